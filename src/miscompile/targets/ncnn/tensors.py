"""Symbolic tensors, of which lowerings make a network of ncnn's layers; standalone scripts contain this module.

ncnn's blobs are matrices of one to four axes, which have no batch axis. A tensor is therefore a shape together with a
blob that holds the same elements in the same order, mostly the shape without a leading 1.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Params = Mapping[int, Any]
"""Parameters of a layer by their numbers: integers, floats, or lists of these."""


@dataclass(eq=False)
class NcnnBlob:
    """A blob with the sizes of its axes, the outermost first: an input, a constant with an `array`, or a result of a
    `call`."""

    sizes: tuple[int, ...]
    array: NDArray[Any] | None = None
    call: "NcnnCall | None" = None


@dataclass(eq=False)
class NcnnCall:
    """A call of a layer. `weights` are the arrays of its part of the model file, each with the number of their kind in
    ncnn's loader (0: after a tag, 1: numbers alone)."""

    layer: str
    operands: list[NcnnBlob]
    params: dict[int, Any]
    weights: Sequence[tuple[NDArray[Any], int]]
    results: list[NcnnBlob] = field(default_factory=list)


@dataclass(eq=False)
class NcnnValue:
    """A tensor: its shape, the blob with its elements, and the name of its element type, which is float32 wherever a
    layer computes."""

    shape: tuple[int, ...]
    blob: NcnnBlob
    dtype: str = "float32"

    @property
    def array(self) -> NDArray[Any] | None:
        """The elements of a constant."""
        return None if self.blob.array is None else self.blob.array.reshape(self.shape)


def tensor(words: Any, dtype: str = "float32") -> NcnnValue:  # noqa: ANN401 - an array, or nested numbers
    """Return a constant."""
    array = np.array(words, dtype, order="C")
    sizes = slim(array.shape)
    return NcnnValue(array.shape, NcnnBlob(sizes, array.reshape(sizes)), dtype)


def slim(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of the blob that a tensor of this shape has by default: without the first of three or more
    axes if its size is 1, which is the place of the batch.

    Raises NotImplementedError for a shape that no blob has.
    """
    sizes = tuple(shape[1:] if len(shape) > 2 and shape[0] == 1 else shape) or (1,)
    if len(sizes) > 4 or 0 in sizes:
        raise NotImplementedError(f"the shape {tuple(shape)} has no lowering")
    return sizes


def whole(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of a blob with every axis of a tensor. Raises NotImplementedError beyond four axes."""
    if len(shape) > 4 or 0 in shape:
        raise NotImplementedError(f"all axes of the shape {tuple(shape)} together have no lowering")
    return tuple(shape) or (1,)


def given(shape: Sequence[int]) -> NcnnValue:
    """Return an input."""
    return NcnnValue(tuple(shape), NcnnBlob(slim(shape)))


def as_blob(x: NcnnValue, sizes: Sequence[int]) -> NcnnBlob:
    """Return a blob of these sizes with the elements of x. Raises NotImplementedError unless they are float32."""
    if x.dtype != "float32":
        raise NotImplementedError(f"{x.dtype} has no lowering here")
    sizes = tuple(int(size) for size in sizes)
    if len(sizes) > 4 or 0 in sizes:
        raise NotImplementedError(f"a blob of the sizes {sizes} has no lowering")
    if x.blob.sizes == sizes:
        return x.blob
    if x.blob.array is not None:
        return NcnnBlob(sizes, x.blob.array.reshape(sizes))
    return results("Reshape", [x.blob], [sizes], axes_of(sizes))[0]


def axes_of(sizes: Sequence[int]) -> dict[int, int]:
    """Return the parameters (w, h, d, c) of layers that make a blob of these sizes."""
    keys = {1: (0,), 2: (1, 0), 3: (2, 1, 0), 4: (2, 11, 1, 0)}[len(sizes)]
    return dict(zip(keys, sizes, strict=True))


def results(
    layer: str,
    operands: Sequence[NcnnBlob],
    sizes: Sequence[Sequence[int]],
    params: Params | None = None,
    weights: Sequence[tuple[Any, int]] = (),
) -> list[NcnnBlob]:
    """Return the results, of these sizes, of a layer."""
    kept = [(np.ascontiguousarray(array, "float32"), kind) for array, kind in weights]
    call = NcnnCall(layer, list(operands), dict(params or {}), kept)
    call.results = [NcnnBlob(tuple(int(size) for size in one), None, call) for one in sizes]
    return call.results


def emit(
    layer: str,
    operands: Sequence[NcnnBlob],
    shape: Sequence[int],
    params: Params | None = None,
    weights: Sequence[tuple[Any, int]] = (),
    sizes: Sequence[int] | None = None,
) -> NcnnValue:
    """Return the single result of a layer as a tensor of this shape, in a blob of `sizes` or of the default ones."""
    whole_shape = tuple(int(size) for size in shape)
    (blob,) = results(layer, operands, [slim(whole_shape) if sizes is None else sizes], params, weights)
    return NcnnValue(whole_shape, blob)


def same(layer: str, x: NcnnValue, params: Params | None = None, weights: Sequence[tuple[Any, int]] = ()) -> NcnnValue:
    """Return the result of a layer that keeps the sizes of its operand."""
    blob = as_blob(x, x.blob.sizes)
    return emit(layer, [blob], x.shape, params, weights, blob.sizes)


def reshaped(x: NcnnValue, shape: Sequence[int]) -> NcnnValue:
    """Return x in another shape without unknown sizes."""
    return NcnnValue(tuple(int(size) for size in shape), as_blob(x, slim(shape)))


def along(x: NcnnValue, *axes: int) -> tuple[NcnnBlob, list[int], int]:
    """Return a blob of x that has all of these axes of the tensor, their numbers in the blob, and the number of
    leading axes that it lacks."""
    rank = len(x.shape)
    if rank == 0:
        raise NotImplementedError("an axis of a single number has no lowering")
    gone = rank - len(slim(x.shape))
    places = [axis % rank - gone for axis in axes]
    if min(places, default=0) >= 0:
        return as_blob(x, slim(x.shape)), places, gone
    return as_blob(x, whole(x.shape)), [axis % rank for axis in axes], 0


def aligned(*values: NcnnValue) -> tuple[list[NcnnBlob], tuple[int, ...]]:
    """Return blobs of several tensors with equally many axes, so that ncnn broadcasts them as numpy does, and the
    shape of the result."""
    shape = np.broadcast_shapes(*[x.shape for x in values])
    count = len(slim(shape))
    padded = [(1,) * (len(shape) - len(x.shape)) + tuple(x.shape) for x in values]
    return [as_blob(x, one[len(one) - count :] or (1,)) for x, one in zip(values, padded, strict=True)], shape


BINARY = {"add": 0, "sub": 1, "mul": 2, "max": 4, "min": 5, "fmod": 12}
REVERSED = {"sub": 7, "fmod": 13}


def paired(name: str, x: NcnnValue, y: NcnnValue) -> NcnnValue:
    """Return the result of a layer that broadcasts two operands; a constant of one element is its parameter."""
    for one, other, code in ((x, y, BINARY[name]), (y, x, REVERSED.get(name, BINARY[name]))):
        number, shape = other.array, np.broadcast_shapes(x.shape, y.shape)
        if number is not None and number.size == 1 and shape == one.shape and other.dtype == "float32":
            return same("BinaryOp", one, {0: code, 1: 1, 2: float(number.reshape(()))})
    blobs, shape = aligned(x, y)
    return emit("BinaryOp", blobs, shape, {0: BINARY[name]})


def constant(x: NcnnValue | None, name: str) -> NDArray[Any]:
    """Return the elements of x. Raises NotImplementedError unless it is a constant of float32."""
    if x is None or x.array is None or x.dtype != "float32":
        raise NotImplementedError(f"{name} has a lowering as a constant of float32 only")
    return x.array


def count_of(shape: Sequence[int]) -> int:
    """Return the number of elements."""
    return math.prod(int(size) for size in shape)
