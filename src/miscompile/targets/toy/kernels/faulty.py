"""Kernels that are wrong on purpose. A program calls one only if its fault is switched on."""

import numpy as np
from numpy.lib.stride_tricks import as_strided

from miscompile.core.tensor import Array
from miscompile.targets.toy.ir import ToyCall
from miscompile.targets.toy.kernels.elementwise import Args, Kernel, unary
from miscompile.targets.toy.kernels.reduction import reduction


def _clamped_sub(_: ToyCall, args: Args) -> Array:
    """Fault unsigned_sub_clamped."""
    return np.asarray(np.where(args[0] < args[1], args[0].dtype.type(0), args[0] - args[1]))


def _one_bit_add(_: ToyCall, args: Args) -> Array:
    """Fault bool_or_as_add: one and one make zero."""
    return np.asarray(np.logical_xor(args[0], args[1]))


def _reciprocal_mean(x: Array, axes: tuple[int, ...]) -> Array:
    """Fault mean_by_reciprocal: the fixed-point reciprocal of the count is rounded down."""
    count = int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
    total = np.sum(x, axes, dtype=np.int64, keepdims=True)
    return np.asarray((total * (65536 // max(count, 1))) >> 16)


def _reading_neg(_: ToyCall, args: Args) -> Array:
    """Fault neg_reads_behind: the read of one element too many has no effect on the result."""
    (x,) = args
    assert x is not None
    longer = as_strided(np.ascontiguousarray(x).reshape(-1), (x.size + 1,))
    return np.asarray(np.negative(longer)[: x.size].reshape(x.shape))


KERNELS: dict[str, Kernel] = {
    "ClampedSub": _clamped_sub,
    "OneBitAdd": _one_bit_add,
    "ReciprocalMean": reduction(_reciprocal_mean),
    "ReadingNeg": _reading_neg,
    "WritingAbs": unary(np.abs),  # the adapter writes the outputs of these two to their memory
    "LeavingSqrt": unary(np.sqrt),
}
