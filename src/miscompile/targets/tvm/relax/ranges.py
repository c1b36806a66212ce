"""Ranges of the integers in a Relax program, which prove for every splice that no integer leaves its type.

TVM simplifies and LLVM compiles as if integers of 32 and 64 bits, signed and unsigned, did not overflow; TVM also
folds narrower ones under that assumption. A generated program has no overflow because its operands were drawn
accordingly. A pattern was not written for these operands, and its results have unknown ranges. Intervals are
therefore computed for everything that a splice touches. Unknown values count as unbounded, and arithmetic on
unbounded values as overflow.

Standalone scripts contain the text of this file, so it has plain functions and imports only TVM.
"""

# ruff: noqa: ANN401 - TVM's objects have no types

from collections.abc import Callable, Iterable
from math import prod
from typing import Any

import tvm
from tvm import relax, tirx
from tvm.ir import Call

from miscompile.targets.tvm.relax.functions import operands
from miscompile.targets.tvm.relax.intervals import (
    IntegerRange,
    OverflowsError,
    full,
    hull,
    magnitudes,
    multiplied,
    of_bits,
    products,
    summed,
    unproven,
)
from miscompile.targets.tvm.relax.loops import loop_spans
from miscompile.targets.tvm.relax.seams import is_plain, sizes_of

MOVING = frozenset({
    "reshape", "permute_dims", "strided_slice", "concat", "expand_dims", "squeeze", "broadcast_to", "flatten", "tile",
    "repeat", "flip", "split", "stack", "nn.batch_flatten", "sort", "max", "min", "maximum", "minimum", "where", "full",
    "full_like", "meshgrid", "floor", "ceil", "round", "trunc", "nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d",
})  # fmt: skip
"""Operators each of whose results is one of their operands."""

PADDING = frozenset({"triu", "tril", "nn.relu", "zeros", "zeros_like"})
"""Operators each of whose results is one of their operands, or zero."""

PLACING = frozenset({"argmax", "argmin", "argsort", "topk"})
"""Operators whose results are indices of their first operand's elements, -1 for none, or these elements."""

TESTING = frozenset({
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isfinite", "isinf", "isnan", "logical_and",
    "logical_or", "logical_xor", "logical_not",
})  # fmt: skip
"""Operators whose results are truth values."""


def follow(bindings: Iterable[Any], known: dict[Any, Any], module: Any, touched: set[Any] | None = None) -> None:
    """Add the ranges of the values of `bindings` to `known`: (least, greatest) for integers, None for others, lists
    for tuples.

    Raises OverflowsError when an integer may leave its type. With `touched`, a binding that uses none of these
    values is trusted, because it is unchanged from a valid program; the value of a binding that uses one is added to
    `touched`.
    """
    for one in bindings:
        plain = is_plain(one)
        used = operands(one.value) if plain else relax.analysis.free_vars(getattr(one, "value", one.var))
        trusted = touched is not None and touched.isdisjoint(used)
        if not trusted and touched is not None:
            touched.add(one.var)
        try:
            known[one.var] = span(one.value, known, module) if plain else unproven("a binding that is not plain")
        except OverflowsError:
            if not trusted:
                raise
            known[one.var] = widest(one.var.ty)


def span(value: Any, known: dict[Any, Any], module: Any) -> Any:
    """Return the range of a value in normal form, in the representation of `follow`. Raises OverflowsError as
    `follow`."""
    if isinstance(value, relax.Var):
        return known[value] if value in known else widest(value.ty)
    if isinstance(value, tvm.ir.GenericConst):
        data, limits = value.value.numpy(), widest(value.ty)
        return (int(data.min()), int(data.max())) if limits and data.size else limits
    if isinstance(value, relax.Tuple):
        return [span(one, known, module) for one in value.fields]
    if isinstance(value, relax.TupleGetItem):
        fields = span(value.tuple_value, known, module)
        return fields[value.index] if isinstance(fields, list) else widest(value.ty)
    if isinstance(value, Call):
        return called(value, [span(one, known, module) for one in value.args], module)
    return None


def called(value: Any, given: list[Any], module: Any) -> Any:
    """Return the range of a call on operands of the ranges `given`."""
    if isinstance(value.op, tvm.ir.GlobalVar):
        function = module[value.op]
        if not isinstance(function, relax.Function):
            return unproven("a function of another kind")
        inner = dict(zip(function.params, given, strict=True))
        for block in function.body.blocks:
            follow(block.bindings, inner, module)
        return span(function.body.body, inner, module)
    if not isinstance(value.op, tvm.ir.Op):
        return unproven("a call of a local function")
    name = value.op.name.removeprefix("relax.")
    if name == "call_tir" and len(value.args) == 2 and isinstance(module[value.args[0]], tirx.PrimFunc):
        kinds = list(value.ty.fields) if isinstance(value.ty, relax.TupleType) else [value.ty]
        if not isinstance(given[1], list) or len(module[value.args[0]].params) != len(given[1]) + len(kinds):
            return unproven("loops on other operands")
        found = loop_spans(module[value.args[0]], given[1], [widest(one) for one in kinds])
        return found if isinstance(value.ty, relax.TupleType) else found[0]
    if not name.startswith("call_") and not spans_in(given) and not spans_in([widest(value.ty)]):
        return widest(value.ty)  # only floats
    return fitting(value.ty, result_span(name, value, given), name)


def result_span(name: str, value: Any, given: list[Any]) -> IntegerRange:
    """Return the range of the result of a call of `relax.name` on operands of the ranges `given`."""
    spans = spans_in(given)
    if name in TESTING or (name == "astype" and str(value.ty.dtype) == "bool"):
        return 0, 1
    tensors = [one for one in value.args if isinstance(one, (relax.Var, tvm.ir.GenericConst))]
    if name in ARITHMETIC and 0 < len(spans) == len(tensors):
        return ARITHMETIC[name](value, *spans)
    if name in ("ones", "ones_like"):
        return 1, 1
    if name == "arange" and all(hasattr(one, "value") for one in value.args):
        return hull((int(one.value), int(one.value)) for one in value.args)
    if name in PLACING:
        sizes, fit = sizes_of(value.args[0].ty)
        return hull([*spans, (-1, prod(sizes))]) if fit else unproven(f"{name} of unknown sizes")
    if name in PADDING or (name == "nn.pad" and spans):
        filler = int(value.attrs.pad_value) if name == "nn.pad" else 0
        return hull([*spans, (filler, filler)])
    if name in MOVING and spans:
        return hull(spans)
    return unproven(f"{name} of integers")


def fitting(kind: Any, found: IntegerRange, name: str) -> Any:
    """Return the range `found` of a result of type `kind`. Raises OverflowsError when it exceeds the type."""
    if isinstance(kind, relax.TupleType):
        return [fitting(one, found, name) for one in kind.fields]
    limits = widest(kind)
    if limits is not None and not (limits[0] <= found[0] and found[1] <= limits[1]):
        raise OverflowsError(f"{name} may leave {kind.dtype}")
    return None if limits is None else found


def widest(kind: Any) -> Any:
    """Return the range of all values of a type."""
    if isinstance(kind, relax.TupleType):
        return [widest(one) for one in kind.fields]
    is_tensor = isinstance(kind, relax.TensorType) and kind.dtype is not None
    return full(str(kind.dtype)) if is_tensor else None


def spans_in(given: Any) -> list[IntegerRange]:
    """Return the ranges of integers among those of operands, also those in tuples."""
    if isinstance(given, list):
        return [one for field in given for one in spans_in(field)]
    return [] if given is None else [given]


def joined(value: Any) -> int:
    """Return how many elements of the operand are reduced to one of the result."""
    (have, fit), (want, fits) = sizes_of(value.args[0].ty), sizes_of(value.ty)
    return prod(have) // prod(want) if fit and fits else unproven("sizes that are not known")


def scanned(value: Any) -> int:
    """Return the number of elements along a scan's axis."""
    sizes, fit = sizes_of(value.args[0].ty)
    axis = value.attrs.axis
    return (prod(sizes) if axis is None else sizes[axis]) if fit else unproven("sizes that are not known")


def contracted(value: Any) -> int:
    """Return the number of products summed in one element of a matrix product."""
    sizes, fit = sizes_of(value.args[0].ty)
    return sizes[-1] if fit and sizes else unproven("sizes that are not known")


def clipped(value: Any, one: IntegerRange) -> IntegerRange:
    """Return the range after `clip`, whose bounds must be numbers of the operand's type."""
    limits = full(str(value.ty.dtype))
    low, high = int(value.args[1].value), int(value.args[2].value)
    if limits is None or not limits[0] <= low <= high <= limits[1]:
        raise OverflowsError("bounds beyond the type")
    return min(max(one[0], low), high), min(max(one[1], low), high)


def inverted(value: Any, one: IntegerRange) -> IntegerRange:
    """Return the range of a number with all bits flipped."""
    limits = full(str(value.ty.dtype)) or one
    return (-one[1] - 1, -one[0] - 1) if limits[0] < 0 else limits


ARITHMETIC: dict[str, Callable[..., IntegerRange]] = {
    "add": lambda _, a, b: (a[0] + b[0], a[1] + b[1]),
    "subtract": lambda _, a, b: (a[0] - b[1], a[1] - b[0]),
    "multiply": lambda _, a, b: products(a, b),
    "negative": lambda _, a: (-a[1], -a[0]),
    "abs": lambda _, a: magnitudes(a),
    "square": lambda _, a: products(magnitudes(a), magnitudes(a)),
    "sign": lambda _, a: (max(a[0], -1) if a[0] < 0 else min(a[0], 1), min(a[1], 1) if a[1] > 0 else max(a[1], -1)),
    "sum": lambda value, a: summed(a, joined(value)),
    "prod": lambda value, a: multiplied(a, joined(value)),
    "cumsum": lambda value, a: summed(a, scanned(value)),
    "cumprod": lambda value, a: multiplied(a, scanned(value)),
    "matmul": lambda value, a, b: summed(products(a, b), contracted(value)),
    "clip": clipped,
    "astype": lambda _, a: a,
    "bitwise_and": lambda _, a, b: of_bits(a, b),
    "bitwise_or": lambda _, a, b: of_bits(a, b),
    "bitwise_xor": lambda _, a, b: of_bits(a, b),
    "bitwise_not": inverted,
}  # fmt: skip
"""For each operator that computes with integers the range of its result, from the call and its operands' ranges."""
