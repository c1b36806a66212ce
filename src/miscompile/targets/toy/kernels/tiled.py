"""Kernels that work tile by tile, with a remainder at the end; only passes write calls of them."""

import numpy as np

from miscompile.core.tensor import Array
from miscompile.targets.toy.ir import ToyCall, ToyShape

TILE = 4
"""Rows and columns of a tile of a matrix."""
LANES = 8
"""Elements that a step of an elementwise loop takes."""


def bounds(size: int, tile: int) -> list[tuple[int, int]]:
    """Return begin and end of each tile of an axis; the last one may be shorter."""
    return [(begin, min(begin + tile, size)) for begin in range(0, size, tile)]


def tiled_product(left: Array, right: Array) -> Array:
    """Multiply two matrices tile by tile; the sum over the inner axis is cut in tiles as well."""
    result: Array = np.zeros((left.shape[0], right.shape[1]), left.dtype)
    for top, bottom in bounds(left.shape[0], TILE):
        for first, last in bounds(right.shape[1], TILE):
            part: Array = np.zeros((bottom - top, last - first), left.dtype)
            for near, far in bounds(left.shape[1], TILE):
                part = part + np.matmul(left[top:bottom, near:far], right[near:far, first:last])
            result[top:bottom, first:last] = part
    return result


def block_transposition(value: Array, perm: ToyShape) -> Array:
    """Transpose by copying blocks of `TILE` rows of the result."""
    shape = tuple(value.shape[axis] for axis in perm)
    result: Array = np.empty(shape, value.dtype)
    view = np.transpose(value, perm)
    for begin, end in bounds(shape[0], TILE):
        result[begin:end] = view[begin:end]
    return result


def look_up(value: Array, table: Array) -> Array:
    """Return the entries of a table of all numbers of a type of 8 bits, the least one first."""
    return np.asarray(table[value.astype(np.int64) - int(np.iinfo(value.dtype).min)])


def steps(call: ToyCall) -> tuple[ToyCall, ...]:
    """Return the calls that an ElementwiseLoop fuses, in order."""
    found: tuple[ToyCall, ...] = call.get("steps")
    return found
