"""Element types of fewer than 16 bits that numpy lacks: their words as numbers and back, and as bit streams.

Both use tables of all words, so that a worker needs nothing but numpy. Sources: the pages on Float stored in 8 bits, 4
bits and on Int4 of the ONNX documentation. A word lies in a byte of its own; signed integers in two's complement.
In a TensorProto, words of fewer than 8 bits are a contiguous bit stream. It begins in the lowest bit of the first byte,
for 2-, 4- and 6-bit types alike (onnx.proto, `raw_data`).
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from miscompile.base.dtypes import DTYPES


class _Layout(NamedTuple):
    """Bits of exponent and mantissa, and the exponent's bias. `fnuz`: no infinities, no negative zero, one NaN."""

    exponent: int
    mantissa: int
    bias: int
    fnuz: bool = False


_LAYOUTS = {
    "float8e4m3fn": _Layout(4, 3, 7),
    "float8e4m3fnuz": _Layout(4, 3, 8, fnuz=True),
    "float8e5m2": _Layout(5, 2, 15),
    "float8e5m2fnuz": _Layout(5, 2, 16, fnuz=True),
    "float4e2m1": _Layout(2, 1, 1),
}


@cache
def table(dtype: str) -> NDArray[np.float32]:
    """Return the number that each word of a small float type stands for: float32 of shape [2**bits]."""
    exponent, mantissa, bias, fnuz = _LAYOUTS[dtype]
    words = np.arange(1 << DTYPES[dtype].bits)
    raised = words >> mantissa & (1 << exponent) - 1
    fraction = (words & (1 << mantissa) - 1) / 2.0**mantissa
    size = np.where(raised == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (raised - bias))
    negative = words >> (exponent + mantissa) == 1
    numbers = np.where(negative, -size, size).astype(np.float32)
    if fnuz:
        numbers[1 << (exponent + mantissa)] = np.nan
    elif dtype == "float8e5m2":
        numbers[(raised == 31) & (fraction == 0)] *= np.inf
        numbers[(raised == 31) & (fraction > 0)] = np.nan
    elif dtype == "float8e4m3fn":
        numbers[(raised == 15) & (fraction == 0.875)] = np.nan
    numbers.flags.writeable = False
    return numbers


def smallest(dtype: str) -> float:
    """Return the smallest number above zero of a small float type."""
    numbers = table(dtype)
    return float(numbers[numbers > 0].min())


def decoded(words: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Return the numbers that `words` stand for: float32, int8 or uint8."""
    info = DTYPES[dtype]
    if info.kind == "float":
        return np.asarray(table(dtype)[words & (1 << info.bits) - 1])
    if info.kind == "uint":
        return np.asarray(words)
    place = 8 - info.bits
    return np.asarray((words << place).astype(np.uint8).view(np.int8) >> place)


def encoded(numbers: NDArray[Any], dtype: str) -> NDArray[np.uint8]:
    """Return the words nearest to `numbers`; ties go to the even word, numbers beyond the largest one to that.

    Integers lose their higher bits. NaN becomes the type's own; float4e2m1 has none and gives zero for it.
    """
    info = DTYPES[dtype]
    if info.kind != "float":
        return np.asarray(np.asarray(numbers).astype(np.int64) & (1 << info.bits) - 1, np.uint8)
    given = np.asarray(numbers, np.float64)
    half = table(dtype)[: 1 << (info.bits - 1)].astype(np.float64)
    positive = half[np.isfinite(half)]
    size = np.minimum(np.nan_to_num(np.abs(given), nan=0.0, posinf=info.high), info.high)
    above = np.searchsorted(positive, size)  # the first number that is not smaller
    below = np.maximum(above - 1, 0)
    down, up = size - positive[below], positive[above] - size
    word = np.where((down < up) | ((down == up) & (below % 2 == 0)), below, above)
    signed = np.signbit(given) & ((word > 0) | (not _LAYOUTS[dtype].fnuz))
    word = np.where(signed, word | 1 << (info.bits - 1), word)
    nan = np.flatnonzero(np.isnan(table(dtype)))
    if nan.size:
        word = np.where(np.isnan(given), nan[0], word)
    return np.asarray(word, np.uint8).reshape(given.shape)


def is_packed(dtype: str) -> bool:
    """Tell whether elements of `dtype` are narrower than a byte (strings are not)."""
    return 0 < DTYPES[dtype].bits < 8


def packed_size(count: int, bits: int) -> int:
    """Return the number of bytes in which `count` elements of `bits` bits fit."""
    return -(-count * bits // 8)


def pack(words: NDArray[np.uint8], bits: int) -> bytes:
    """Return the bit stream of the low `bits` bits of every word, in row-major order, zero-padded to a byte."""
    flat = np.ascontiguousarray(words).reshape(-1, 1)
    return np.packbits(np.unpackbits(flat, axis=1, count=bits, bitorder="little"), bitorder="little").tobytes()


def unpack(data: bytes, bits: int, count: int) -> NDArray[np.uint8]:
    """Return the first `count` elements of the bit stream `data`, one a byte; `data` must be long enough."""
    stream = np.unpackbits(np.frombuffer(data, np.uint8), count=count * bits, bitorder="little")
    return np.packbits(stream.reshape(count, bits), axis=1, bitorder="little").reshape(count)
