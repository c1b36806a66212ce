"""Kernels of quantisation. The sources are the ONNX operator pages."""

from typing import Any

import numpy as np

from miscompile.core.tensor import Array
from miscompile.targets.toy.ir import ToyCall
from miscompile.targets.toy.kernels.elementwise import Args, Kernel


def _along(call: ToyCall, parameter: Array, rank: int) -> Array:
    """Shape a scale or zero point for broadcasting: one number, or one for each element of the axis."""
    if parameter.size == 1:
        return parameter.reshape(())
    axis = call.get("axis", 1) % rank
    return parameter.reshape((1,) * axis + (-1,) + (1,) * (rank - axis - 1))


def quantised_type(call: ToyCall, zero: Array | None) -> "np.dtype[Any]":
    """Return the element type of a QuantizeLinear: that of its zero point, or the one that it names, or uint8."""
    named: np.dtype[Any] | None = call.get("output_dtype")
    return zero.dtype if zero is not None else named or np.dtype(np.uint8)


def _quantize(call: ToyCall, args: Args) -> Array:
    x, scale, zero = (*args, None)[:3]
    dtype = quantised_type(call, zero)
    limits = np.iinfo(dtype)
    steps = np.rint(x.astype(scale.dtype) / _along(call, scale, x.ndim)).astype(np.float64)
    if zero is not None:
        steps = steps + _along(call, zero, x.ndim)
    return np.asarray(np.clip(steps, limits.min, limits.max)).astype(dtype)


def _dequantize(call: ToyCall, args: Args) -> Array:
    x, scale, zero = (*args, None)[:3]
    steps = x.astype(np.int64)
    if zero is not None:
        steps = steps - _along(call, zero, x.ndim)
    return np.asarray(steps.astype(scale.dtype) * _along(call, scale, x.ndim))


KERNELS: dict[str, Kernel] = {"QuantizeLinear": _quantize, "DequantizeLinear": _dequantize}
