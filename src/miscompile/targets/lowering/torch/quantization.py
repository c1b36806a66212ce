"""Quantisation."""

# ruff: noqa: ANN401 - tensors, and nested sequences of numbers

from typing import Any

import torch

from miscompile.targets.lowering.table import lowers
from miscompile.targets.lowering.torch.convolution import conv
from miscompile.targets.lowering.torch.names import dtype_of


def spread(scale: Any, x: Any, axis: int, block_size: int) -> Any:
    """Return scales or zero points (per tensor, per index of `axis`, or per block) in a shape that broadcasts to x."""
    if scale.numel() == 1 and scale.dim() <= 1:
        return scale.reshape(())
    if scale.dim() > 1:
        return torch.repeat_interleave(scale, block_size, axis).narrow(axis, 0, x.shape[axis])
    shape = [1] * x.dim()
    shape[axis] = scale.shape[0]
    return scale.reshape(shape)


def saturate_to(y: Any, zero: Any, dtype: Any) -> Any:
    """Return rounded quotients plus the zero point, saturated to the range of the integer type."""
    info = torch.iinfo(dtype)
    y = torch.clamp(y.to(torch.float32), -100000.0, 100000.0).to(torch.int32)
    return torch.clamp(y if zero is None else y + zero.to(torch.int32), info.min, info.max).to(dtype)


@lowers("QuantizeLinear")
def quantize(
    x: Any,
    scale: Any,
    zero: Any = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: str = "uint8",
    precision: str = "float32",
    saturate: int = 1,
) -> Any:
    """round(x / scale) + zero, where halves round to even, saturated to the range of the type."""
    dtype = dtype_of(output_dtype) if zero is None else zero.dtype
    if dtype.is_floating_point:
        raise NotImplementedError("quantisation to floats has no lowering")
    zero = zero if zero is None else spread(zero, x, axis, block_size)
    return saturate_to(torch.round(x / spread(scale, x, axis, block_size)), zero, dtype)


@lowers("DequantizeLinear")
def dequantize(
    x: Any, scale: Any, zero: Any = None, *, axis: int = 1, block_size: int = 0, output_dtype: str = ""
) -> Any:
    """(x - zero) * scale."""
    if x.is_floating_point():
        raise NotImplementedError("quantisation of floats has no lowering")
    y = x.to(torch.int32)
    if zero is not None:
        y = y - spread(zero, x, axis, block_size).to(torch.int32)
    y = y.to(torch.float32) * spread(scale, x, axis, block_size).to(torch.float32)
    return y.to(dtype_of(output_dtype) if output_dtype else scale.dtype)


@lowers("DynamicQuantizeLinear")
def dynamic_quantize(x: Any) -> Any:
    """x quantised to 8 bits over its own range extended to zero, then the scale and the zero point."""
    low, high = torch.clamp_max(torch.amin(x), 0.0), torch.clamp_min(torch.amax(x), 0.0)
    scale = (high - low) / 255.0
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)
    zero = torch.round(torch.clamp(-low / scale, 0.0, 255.0)).to(torch.uint8)
    return saturate_to(torch.round(x / scale), zero, torch.uint8), scale, zero


@lowers("QLinearMatMul")
def quantized_matmul(
    a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any, y_scale: Any, y_zero: Any
) -> Any:
    """The quantised product of quantised matrices; there may be one scale per row of a and per column of b."""
    if a_scale.dim() == 1 and a_scale.shape[0] > 1:
        a_scale, a_zero = a_scale.unsqueeze(-1), a_zero.unsqueeze(-1)
    product = torch.matmul(a.to(torch.int32) - a_zero.to(torch.int32), b.to(torch.int32) - b_zero.to(torch.int32))
    scale = a_scale.to(torch.float32) * b_scale.to(torch.float32) / y_scale.to(torch.float32)
    return saturate_to(torch.round(product.to(torch.float32) * scale), y_zero, y_zero.dtype)


@lowers("QLinearConv")
def quantized_conv(
    x: Any,
    x_scale: Any,
    x_zero: Any,
    w: Any,
    w_scale: Any,
    w_zero: Any,
    y_scale: Any,
    y_zero: Any,
    bias: Any = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Any = None,
    group: int = 1,
    kernel_shape: Any = None,
    pads: Any = None,
    strides: Any = None,
) -> Any:
    """The quantised convolution of quantised values, computed in float64, which holds all sums exactly."""
    x = x.to(torch.float64) - x_zero.to(torch.float64)
    w = w.to(torch.float64) - w_zero.to(torch.float64).reshape(-1, *[1] * (w.dim() - 1))
    bias = bias if bias is None else bias.to(torch.float64)
    y = conv(x, w, bias, auto_pad=auto_pad, dilations=dilations, group=group, pads=pads, strides=strides)
    scale = x_scale * w_scale.reshape(-1, *[1] * (w.dim() - 2)) / y_scale
    return saturate_to(torch.round(y.to(torch.float32) * scale), y_zero, y_zero.dtype)
