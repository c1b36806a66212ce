"""Conversion of tensors among the parameters of instances to other element types and shapes."""

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.core.tensor import Array, Tensor, tensor


def converted(value: Tensor, dtype: str) -> Tensor:
    """Return a tensor with its elements rounded to another type; numbers out of range become its ends, NaN zero."""
    wanted = DTYPES[dtype]
    numbers = value.numbers()
    if wanted.kind == "bool":
        return Tensor("bool", np.asarray(numbers != 0))
    if wanted.kind == "complex":
        return Tensor(dtype, np.asarray(numbers, wanted.storage))
    if np.iscomplexobj(numbers):
        numbers = numbers.real
    if wanted.kind in ("int", "uint"):
        whole = numbers if numbers.dtype.kind in "iub" else np.nan_to_num(np.rint(numbers), nan=0.0)
        return tensor(_clipped(whole, int(wanted.low), int(wanted.high)), dtype)
    wide = np.asarray(numbers, np.float64)
    ends = np.where(np.isfinite(wide), np.clip(wide, wanted.low, wanted.high), wide)
    return tensor(ends if dtype == "float64" else ends.astype(np.float32), dtype)


def _clipped(numbers: Array, low: int, high: int) -> Array:
    """Return the numbers within the ends of a type, in an integer type that holds all of them."""
    whole = [max(low, min(high, int(number))) for number in numbers.ravel().tolist()]
    return np.array(whole, np.uint64 if low == 0 else np.int64).reshape(numbers.shape)


def refitted(array: Array, shape: tuple[int, ...]) -> Array:
    """Return an array of another shape with the same elements, repeated as often as needed; ones if there are none."""
    if not array.size:
        return np.ones(shape, array.dtype)
    return np.resize(array, shape)
