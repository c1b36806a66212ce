"""Elements narrower than a byte: one element a byte in memory, a contiguous bit stream in a TensorProto.

The stream begins in the lowest bit of the first byte, for 2-, 4- and 6-bit types alike (onnx.proto, `raw_data`).
"""

import numpy as np
from numpy.typing import NDArray

from miscompile.base.dtypes import DTYPES


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
