"""Elements of tensors as text, exact to the bit.

Numbers are written as decimals that read back to the same bits. An element without such a decimal (a NaN with a
payload, a bool that is neither 0 nor 1) is written as the hexadecimal word that stores it.
"""

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.core.tensor import Array, Tensor

_SMALL_FLOATS: dict[str, Any] = {
    "bfloat16": ml_dtypes.bfloat16,
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2,
    "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float8e8m0": ml_dtypes.float8_e8m0fnu,
    "float6e2m3": ml_dtypes.float6_e2m3fn,
    "float6e3m2": ml_dtypes.float6_e3m2fn,
    "float4e2m1": ml_dtypes.float4_e2m1fn,
}
_PARTS = {"complex64": "float32", "complex128": "float64"}


def part_dtype(dtype: str) -> str:
    """Return the type of the two parts of a complex dtype, and any other dtype unchanged."""
    return _PARTS.get(dtype, dtype)


def words(array: Array) -> Array:
    """Return the elements of a non-string array as a flat array of unsigned words of the same width."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind == "c":
        flat = flat.view(f"f{flat.dtype.itemsize // 2}")
    return flat.view(f"u{flat.dtype.itemsize}")


def format_elements(value: Tensor) -> list[str]:
    """Return the text of every element of a non-string tensor, in row-major order, two texts for a complex one."""
    dtype = part_dtype(value.dtype)
    stored = words(value.array)
    texts = _decimals(dtype, stored)
    back = words(parse_elements(dtype, texts))
    width = stored.dtype.itemsize * 2
    return [
        text if word == read else f"0x{int(word):0{width}x}"
        for text, word, read in zip(texts, stored, back, strict=True)
    ]


def parse_elements(dtype: str, texts: Sequence[str]) -> Array:
    """Return the flat storage array of the elements in `texts`; `dtype` is neither complex nor string.

    Raises ValueError for a text that is not an element of `dtype` and OverflowError for an integer out of range.
    """
    info = DTYPES[dtype]
    given = {index: int(text, 16) for index, text in enumerate(texts) if text.startswith("0x")}
    plain = ["0" if index in given else text for index, text in enumerate(texts)] if given else texts
    array = _encode(dtype, plain)
    if given:
        array = array.copy()
        stored = array.view(f"u{info.storage.itemsize}")
        for index, word in given.items():
            stored[index] = word
    return array


def _decimals(dtype: str, stored: Array) -> list[str]:
    info = DTYPES[dtype]
    if info.kind == "bool":
        return ["true" if word else "false" for word in stored]
    if info.kind == "float":
        # numpy finds the shortest digits for the width, Python writes them without an exponent where it can.
        return [repr(float(str(number))) for number in _numbers(dtype, stored)]
    if info.bits < 8:
        half, full = 1 << (info.bits - 1), 1 << info.bits
        return [str(int(word) - full if info.kind == "int" and half <= word < full else int(word)) for word in stored]
    return [str(number) for number in stored.view(info.storage)]


def _numbers(dtype: str, stored: Array) -> Array:
    if dtype not in _SMALL_FLOATS:
        return stored.view(DTYPES[dtype].storage)
    with np.errstate(all="ignore"):
        numbers: Array = stored.view(_SMALL_FLOATS[dtype]).astype(np.float32)
    return numbers


def _encode(dtype: str, texts: Sequence[str]) -> Array:
    info = DTYPES[dtype]
    if info.kind == "bool":
        return np.array([_truth(text) for text in texts], np.bool_)
    if info.kind == "float":
        with np.errstate(all="ignore"):
            if dtype in _SMALL_FLOATS:
                wide = np.array([float(text) for text in texts], np.float32)
                narrow: Array = wide.astype(_SMALL_FLOATS[dtype]).view(info.storage)
                return narrow
            return np.array([float(text) for text in texts], info.storage)
    integers = [int(text) for text in texts]
    if info.bits < 8:
        return np.array([_narrow(number, int(info.low), int(info.high), info.bits) for number in integers], np.uint8)
    return np.array(integers, info.storage)


def _truth(text: str) -> bool:
    if text not in ("true", "false", "0"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text == "true"


def _narrow(number: int, low: int, high: int, bits: int) -> int:
    if not low <= number <= 255:
        raise OverflowError(f"{number} is not between {low} and {high}")
    return number & ((1 << bits) - 1)
