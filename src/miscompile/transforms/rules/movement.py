"""Entries of the language that move elements without arithmetic.

Canonical parameters: axes are not negative, in rising order and at least one; `perm` is always given; Reshape and
Expand name the whole result shape; Slice has a begin, an end and a step for each sliced axis (an end of -1 is before
the first element); Gather holds its indices (one number, or a tuple), Pad its value (0, or dtype and number).
"""

import math

import numpy as np

from miscompile.core.tensor import Array
from miscompile.transforms.rules.kinds import (
    ANY,
    ELEMENTS,
    Parameters,
    TermOperator,
    TermType,
    TermTypes,
    broadcast,
    distinct_axes,
)


def length(begin: int, end: int, step: int) -> int:
    """Return the number of elements in a canonical slice of an axis."""
    return max(0, -((begin - end) // step))


def _transposed(types: TermTypes, parameters: Parameters, output: int) -> TermType | None:
    dtype, shape = types[0]
    perm: tuple[int, ...] = parameters[0]
    if len(perm) != len(shape) or sorted(perm) != list(range(len(shape))):
        return None
    return TermType(dtype, tuple([shape[axis] for axis in perm]))


def _concatenated(types: TermTypes, parameters: Parameters, output: int) -> TermType | None:
    axis: int = parameters[0]
    if not types:
        return None
    dtype, first = types[0]
    if not 0 <= axis < len(first):
        return None
    rest = first[:axis] + first[axis + 1 :]
    for other in types:
        shape = other.shape
        if other.dtype != dtype or len(shape) != len(first) or shape[:axis] + shape[axis + 1 :] != rest:
            return None
    return TermType(dtype, (*first[:axis], sum(other.shape[axis] for other in types), *first[axis + 1 :]))


def _split(types: TermTypes, parameters: Parameters, output: int) -> TermType | None:
    dtype, shape = types[0]
    axis, sizes = parameters
    if not (0 <= axis < len(shape) and 0 <= output < len(sizes)) or min(sizes) < 0 or sum(sizes) != shape[axis]:
        return None
    return TermType(dtype, (*shape[:axis], sizes[output], *shape[axis + 1 :]))


def _split_value(arrays: tuple[Array, ...], parameters: Parameters, output: int) -> Array:
    axis, sizes = parameters
    return np.split(arrays[0], np.cumsum(sizes)[:-1].tolist(), axis)[output]


def _reshaped(types: TermTypes, parameters: Parameters, output: int) -> TermType | None:
    shape: tuple[int, ...] = parameters[0]
    good = min(shape, default=0) >= 0 and math.prod(shape) == math.prod(types[0].shape)
    return TermType(types[0].dtype, shape) if good else None


def _flattened(types: TermTypes, parameters: Parameters, output: int) -> TermType | None:
    dtype, shape = types[0]
    axis: int = parameters[0]
    if not 0 <= axis <= len(shape):
        return None
    return TermType(dtype, (math.prod(shape[:axis]), math.prod(shape[axis:])))


def _flatten_value(arrays: tuple[Array, ...], parameters: Parameters, output: int) -> Array:
    shape = arrays[0].shape
    return arrays[0].reshape(math.prod(shape[: parameters[0]]), math.prod(shape[parameters[0] :]))


def _squeezed(types: TermTypes, parameters: Parameters, output: int) -> TermType | None:
    dtype, shape = types[0]
    axes: tuple[int, ...] = parameters[0]
    if not axes or not distinct_axes(axes, len(shape)) or any(shape[axis] != 1 for axis in axes):
        return None
    return TermType(dtype, tuple([size for axis, size in enumerate(shape) if axis not in axes]))


def _unsqueezed(types: TermTypes, parameters: Parameters, output: int) -> TermType | None:
    dtype, shape = types[0]
    axes: tuple[int, ...] = parameters[0]
    rank = len(shape) + len(axes)
    if not axes or not distinct_axes(axes, rank):
        return None
    sizes = iter(shape)
    return TermType(dtype, tuple([1 if axis in axes else next(sizes) for axis in range(rank)]))


def _expanded(types: TermTypes, parameters: Parameters, output: int) -> TermType | None:
    shape: tuple[int, ...] = parameters[0]
    return TermType(types[0].dtype, shape) if broadcast(types[0].shape, shape) == shape else None


def _takes(size: int, begin: int, end: int, step: int) -> bool:
    if step > 0:
        return 0 <= begin <= size and 0 <= end <= size
    return step < 0 and 0 <= begin < size and -1 <= end < size


def _sliced(types: TermTypes, parameters: Parameters, output: int) -> TermType | None:
    dtype, shape = types[0]
    axes, begins, ends, steps = parameters
    if not axes or not len(axes) == len(begins) == len(ends) == len(steps) or not distinct_axes(axes, len(shape)):
        return None
    sizes = list(shape)
    for axis, begin, end, step in zip(axes, begins, ends, steps, strict=True):
        if not _takes(shape[axis], begin, end, step):
            return None
        sizes[axis] = length(begin, end, step)
    return TermType(dtype, tuple(sizes))


def _slice_value(arrays: tuple[Array, ...], parameters: Parameters, output: int) -> Array:
    found = [slice(None)] * arrays[0].ndim
    for axis, begin, end, step in zip(*parameters, strict=True):
        found[axis] = slice(begin, None if end < 0 else end, step)
    return arrays[0][tuple(found)]


def _padded(types: TermTypes, parameters: Parameters, output: int) -> TermType | None:
    dtype, shape = types[0]
    pads, mode, value = parameters
    rank = len(shape)
    if not rank or len(pads) != 2 * rank or (value != 0 and value[0] != dtype):
        return None
    ends = list(zip(shape, pads[:rank], pads[rank:], strict=True))
    if mode == "constant":
        fits = all(size + min(low, 0) + min(high, 0) >= 0 for size, low, high in ends)
    else:
        fits = value == 0 and min(pads) >= 0 and all(_reaches(mode, *end) for end in ends)
    return TermType(dtype, tuple([size + low + high for size, low, high in ends])) if fits else None


def _reaches(mode: str, size: int, low: int, high: int) -> bool:
    """Tell whether an axis has the elements that its pads copy (edge: the outermost; reflect: those beside it)."""
    if mode not in ("edge", "reflect"):
        return False
    return not (low or high) or (size >= 1 and (mode == "edge" or max(low, high) < size))


def _pad_value(arrays: tuple[Array, ...], parameters: Parameters, output: int) -> Array:
    data, (pads, mode, value) = arrays[0], parameters
    rank = data.ndim
    ends = list(zip(pads[:rank], pads[rank:], strict=True))
    widths = [(max(low, 0), max(high, 0)) for low, high in ends]
    if mode != "constant":
        return np.pad(data, widths, mode=mode)
    fill = np.asarray(0 if value == 0 else value[1]).astype(data.dtype)
    grown = np.pad(data, widths, constant_values=fill)
    sizes = grown.shape
    return grown[
        tuple(slice(max(-low, 0), size - max(-high, 0)) for size, (low, high) in zip(sizes, ends, strict=True))
    ]


def _gathered(types: TermTypes, parameters: Parameters, output: int) -> TermType | None:
    dtype, shape = types[0]
    axis, indices = parameters
    taken: tuple[int, ...] = indices if isinstance(indices, tuple) else (indices,)
    if not 0 <= axis < len(shape) or not all(0 <= index < shape[axis] for index in taken):
        return None
    middle = (len(indices),) if isinstance(indices, tuple) else ()
    return TermType(dtype, (*shape[:axis], *middle, *shape[axis + 1 :]))


def _gather_value(arrays: tuple[Array, ...], parameters: Parameters, output: int) -> Array:
    axis, indices = parameters
    return np.take(arrays[0], np.array(indices, np.int64), axis)


def constant_array(dtype: str, shape: tuple[int, ...], value: object) -> Array:
    """Return the elements of a Constant term: a fill value, or the bytes of all elements."""
    if isinstance(value, bytes):
        return np.frombuffer(value, ELEMENTS[dtype]).reshape(shape)
    return np.full(shape, value, ELEMENTS[dtype])


def _constant(types: TermTypes, parameters: Parameters, output: int) -> TermType | None:
    dtype, shape, value = parameters
    if dtype not in ELEMENTS or min(shape, default=0) < 0:
        return None
    if isinstance(value, bytes):
        return TermType(dtype, shape) if len(value) == math.prod(shape) * ELEMENTS[dtype].itemsize else None
    return TermType(dtype, shape)


OPERATORS = (
    TermOperator("Transpose", 1, ("perm",), _transposed, lambda a, p, o: a[0].transpose(p[0]), ANY),
    TermOperator("Concat", None, ("axis",), _concatenated, lambda a, p, o: np.concatenate(a, p[0]), ANY),
    TermOperator("Split", 1, ("axis", "sizes"), _split, _split_value, ANY),
    TermOperator("Reshape", 1, ("shape",), _reshaped, lambda a, p, o: a[0].reshape(p[0]), ANY),
    TermOperator("Flatten", 1, ("axis",), _flattened, _flatten_value, ANY),
    TermOperator("Squeeze", 1, ("axes",), _squeezed, lambda a, p, o: np.squeeze(a[0], p[0]), ANY),
    TermOperator("Unsqueeze", 1, ("axes",), _unsqueezed, lambda a, p, o: np.expand_dims(a[0], p[0]), ANY),
    TermOperator("Expand", 1, ("shape",), _expanded, lambda a, p, o: np.broadcast_to(a[0], p[0]), ANY),
    TermOperator("Slice", 1, ("axes", "begins", "ends", "steps"), _sliced, _slice_value, ANY),
    TermOperator("Pad", 1, ("pads", "mode", "value"), _padded, _pad_value, ANY),
    TermOperator("Gather", 1, ("axis", "indices"), _gathered, _gather_value, ANY),
    TermOperator(
        "Constant", 0, ("dtype", "shape", "value"), _constant, lambda a, p, o: constant_array(*p), ANY, main=-1
    ),
)
