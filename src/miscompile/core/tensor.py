"""The tensor that crosses borders: an element type by name, and numpy storage."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from miscompile.base.dtypes import DTYPES, SMALL
from miscompile.core.small import decoded, encoded

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A dense tensor.

    `array` has the storage type of `dtype`: bfloat16 lies in uint16 words, 4-bit types one element a byte,
    strings in an object array. Two tensors are `same` when dtype, shape and every bit agree.
    """

    dtype: str
    array: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions; `()` for a scalar."""
        return tuple(self.array.shape)

    def same(self, other: "Tensor") -> bool:
        """Tell whether both hold the same bits (NaN payloads and the sign of zero count)."""
        if self.dtype != other.dtype or self.array.shape != other.array.shape:
            return False
        if self.array is other.array:
            return True
        if self.array.dtype == object:
            return bool((self.array == other.array).all())
        return self.array.tobytes() == other.array.tobytes()

    def numbers(self) -> Array:
        """Return the elements as a numpy array that one can calculate with.

        bfloat16 and smaller floats widen to float32, signed integers of fewer than 8 bits to int8.
        """
        if self.dtype == "bfloat16":
            return (self.array.astype(np.uint32) << 16).view(np.float32).reshape(self.array.shape)
        return decoded(self.array, self.dtype) if self.dtype in SMALL else self.array


def tensor(array: Array, dtype: str | None = None) -> Tensor:
    """Wrap `array`; with `dtype`, convert numbers to that type first.

    bfloat16 and smaller floats round to nearest even. Words of the storage type of a type that numpy lacks are taken
    for elements of that type, as they are.
    """
    if dtype is None:
        return Tensor(numpy_name(array.dtype), array)
    if dtype == "bfloat16" and array.dtype != np.uint16:
        return Tensor(dtype, to_bfloat16(array))
    if dtype in SMALL and array.dtype != np.uint8:
        return Tensor(dtype, encoded(array, dtype))
    return Tensor(dtype, np.asarray(array, DTYPES[dtype].storage))


def to_bfloat16(array: Array) -> Array:
    """Round `array` to bfloat16 (nearest, ties to even) and return the uint16 words."""
    words = np.ascontiguousarray(array, np.float32).view(np.uint32)
    rounded = (words + 0x7FFF + ((words >> 16) & 1)) >> 16
    quiet_nan = (words >> 16) | 0x40
    return np.where(np.isnan(np.asarray(array, np.float32)), quiet_nan, rounded).astype(np.uint16).reshape(array.shape)


def text_of(element: object) -> str:
    """Return an element of a string tensor as text; bytes that are not UTF-8 become surrogate escapes."""
    return element.decode("utf-8", "surrogateescape") if isinstance(element, bytes) else str(element)


@cache
def numpy_name(dtype: "np.dtype[Any]") -> str:
    """Return the ONNX name of a numpy type; object and text types are `string`. Cached: numpy makes names slowly."""
    return "string" if dtype.kind in "OUS" else dtype.name
