"""Symbolic tensors, of which lowerings make a graph of LiteRT's operators; standalone scripts contain this module.

A graph consists of values alone: each one refers to the call that computes it, and a call to its operands. All shapes
are fixed, and lowerings compute those of results.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(eq=False)
class LiteValue:
    """A tensor of a graph: an input, a constant with an `array`, or the result of a `call`."""

    shape: tuple[int, ...]
    dtype: str
    array: NDArray[Any] | None = None
    call: "LiteCall | None" = None


@dataclass(eq=False)
class LiteCall:
    """A call of the built-in operator `code`; `options` is the name of its table of options, with `fields`."""

    code: str
    operands: Sequence[LiteValue]
    options: str
    fields: dict[str, Any]
    results: list[LiteValue] = field(default_factory=list)


def tensor(words: Any, dtype: str = "") -> LiteValue:  # noqa: ANN401 - an array, or nested sequences of numbers
    """Return a constant of an array's elements, converted to `dtype` where a type is given."""
    array = np.array(words, dtype or None, order="C")
    return LiteValue(array.shape, array.dtype.name, array)


def emit(
    code: str,
    operands: Sequence[LiteValue],
    shape: Sequence[int],
    dtype: str,
    options: str = "",
    **fields: Any,  # noqa: ANN401
) -> LiteValue:
    """Return the single result, of this shape and type, of an operator."""
    return emit_all(code, operands, [(shape, dtype)], options, **fields)[0]


def emit_all(
    code: str,
    operands: Sequence[LiteValue],
    results: Sequence[tuple[Sequence[int], str]],
    options: str = "",
    **fields: Any,  # noqa: ANN401
) -> list[LiteValue]:
    """Return all results of an operator."""
    call = LiteCall(code, operands, options, fields)
    call.results = [LiteValue(tuple(int(size) for size in shape), dtype, None, call) for shape, dtype in results]
    return call.results


def only(value: LiteValue, *dtypes: str) -> LiteValue:
    """Return `value`; raise NotImplementedError unless its type is one of `dtypes`."""
    if value.dtype not in dtypes:
        raise NotImplementedError(f"{value.dtype} has no lowering here")
    return value


def same(code: str, x: LiteValue, *dtypes: str, options: str = "", **fields: Any) -> LiteValue:  # noqa: ANN401
    """Return the result of an operator of one operand that keeps shape and type."""
    return emit(code, [only(x, *dtypes)], x.shape, x.dtype, options, **fields)


def paired(code: str, x: LiteValue, y: LiteValue, dtypes: Sequence[str], options: str = "", to: str = "") -> LiteValue:
    """Return the result, by default of the type of x, of an operator that broadcasts two operands of `dtypes`."""
    shape = np.broadcast_shapes(x.shape, y.shape)
    return emit(code, [only(x, *dtypes), only(y, *dtypes)], shape, to or x.dtype, options)


def reshaped(x: LiteValue, shape: Sequence[int]) -> LiteValue:
    """Return x in another shape without unknown sizes."""
    return emit("RESHAPE", [x, tensor(list(shape), "int32")], shape, x.dtype, "ReshapeOptions", newShape=list(shape))


def permuted(x: LiteValue, perm: Sequence[int]) -> LiteValue:
    """Return x with its axes in another order; x itself for a scalar, which TRANSPOSE does not write."""
    if not perm:
        return x
    if len(x.shape) > 6:
        raise NotImplementedError("TRANSPOSE has a lowering for six axes at most")
    return emit("TRANSPOSE", [x, tensor(list(perm), "int32")], [x.shape[i] for i in perm], x.dtype, "TransposeOptions")


def padded(x: LiteValue, sides: Sequence[tuple[int, int]], number: float = 0) -> LiteValue:
    """Return x with constant padding (before, after) on each axis."""
    if not any(before or after for before, after in sides):
        return x
    if len(x.shape) > 5 or any(before < 0 or after < 0 for before, after in sides):
        raise NotImplementedError("padding has a lowering for five axes at most, and none that crops")
    shape = [size + before + after for size, (before, after) in zip(x.shape, sides, strict=True)]
    fill = tensor(np.full((1,), number), x.dtype)
    return emit("PADV2", [x, tensor([list(side) for side in sides], "int32"), fill], shape, x.dtype, "PadV2Options")
