"""Tensors with other sizes, and operands that hold sizes, for programs in which one size becomes another."""

import numpy as np

from miscompile.core.tensor import Tensor


def stretched(value: Tensor, size: int, goal: int) -> Tensor:
    """Return `value` with `goal` in place of each dimension of `size`, its elements repeated."""
    array = value.array
    for axis, held in enumerate(value.shape):
        if held == size:
            if not size:
                shape = tuple(goal if place == axis else one for place, one in enumerate(array.shape))
                array = np.zeros(shape, array.dtype)
            else:
                array = array.take(np.arange(goal) % size, axis=axis)
    return Tensor(value.dtype, np.ascontiguousarray(array))


def retargeted(value: Tensor, size: int, goal: int, *, scale: bool) -> Tensor:
    """Return a shape operand with `goal` in place of `size`, and with `scale` its multiples in place of those of
    `size`."""
    if value.dtype != "int64":
        return value
    array = np.where(value.array == size, goal, value.array)
    if scale:
        multiple = (value.array > 0) & (value.array % size == 0)
        array = np.where(multiple, value.array // size * goal, value.array)
    return Tensor(value.dtype, array.astype(np.int64))
