"""Convolutions."""

# ruff: noqa: ANN401 - tensors, and nested sequences of numbers

from typing import Any

import torch

from miscompile.targets.lowering.table import lowers
from miscompile.targets.lowering.torch.names import F
from miscompile.targets.lowering.windows import margins


def pad_spatial(x: Any, sides: Any, value: float = 0.0) -> Any:
    """Return x with padding around its spatial axes."""
    return F.pad(x, [size for side in reversed(sides) for size in side], value=value)


@lowers("Conv")
def conv(
    x: Any,
    w: Any,
    bias: Any = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Any = None,
    group: int = 1,
    kernel_shape: Any = None,
    pads: Any = None,
    strides: Any = None,
) -> Any:
    """A convolution over one to three axes; unequal padding is added before, because torch pads both sides alike."""
    kernel = tuple(w.shape[2:])
    strides, dilations = strides or (1,) * len(kernel), dilations or (1,) * len(kernel)
    sides = margins(x, kernel, strides, dilations, pads, auto_pad)
    padding = tuple([before for before, _ in sides])
    if any(before != after for before, after in sides):
        x, padding = pad_spatial(x, sides), (0,) * len(kernel)
    if len(kernel) not in (1, 2, 3):
        raise NotImplementedError("Conv has a lowering for one to three axes only")
    convolve = (F.conv1d, F.conv2d, F.conv3d)[len(kernel) - 1]
    return convolve(x, w, bias, strides, padding, dilations, group)


@lowers("ConvTranspose")
def conv_transpose(
    x: Any,
    w: Any,
    bias: Any = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Any = None,
    group: int = 1,
    kernel_shape: Any = None,
    output_padding: Any = None,
    output_shape: Any = None,
    pads: Any = None,
    strides: Any = None,
) -> Any:
    """The gradient of a convolution; padding that torch does not support is cropped or added afterwards."""
    rank = x.dim() - 2
    if rank not in (1, 2, 3):
        raise NotImplementedError("ConvTranspose has a lowering for one to three axes only")
    convolve = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1]
    strides, dilations = strides or (1,) * rank, dilations or (1,) * rank
    extra, pads = output_padding or (0,) * rank, pads or (0,) * (2 * rank)
    sides = [(pads[i], pads[i + rank]) for i in range(rank)]
    if output_shape is not None or auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        sides = []
        for i in range(rank):
            full = (x.shape[i + 2] - 1) * strides[i] + extra[i] + (w.shape[i + 2] - 1) * dilations[i] + 1
            whole = full - (output_shape[i - rank] if output_shape is not None else x.shape[i + 2] * strides[i])
            less = max(whole, 0) // 2
            sides.append((less, whole - less) if auto_pad == "SAME_UPPER" else (whole - less, less))
            sides[-1] = (0, whole) if whole < 0 else sides[-1]
    plain = all(before == after >= 0 for before, after in sides)
    if plain and all(e < max(s, d) for e, s, d in zip(extra, strides, dilations, strict=True)):
        return convolve(x, w, bias, strides, [before for before, _ in sides], extra, group, dilations)
    y = convolve(x, w, None, strides, 0, 0, group, dilations)
    y = pad_spatial(y, [(-before, e - after) for (before, after), e in zip(sides, extra, strict=True)])
    return y if bias is None else y + bias.reshape(-1, *[1] * rank)


@lowers("ConvInteger")
def conv_integer(
    x: Any,
    w: Any,
    x_zero: Any = None,
    w_zero: Any = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Any = None,
    group: int = 1,
    kernel_shape: Any = None,
    pads: Any = None,
    strides: Any = None,
) -> Any:
    """A convolution of 8-bit integers with 32-bit sums, computed in float64, which holds all of them exactly."""
    x, w = x.to(torch.float64), w.to(torch.float64)
    if x_zero is not None:
        x = x - x_zero.to(torch.float64)
    if w_zero is not None:
        w = w - w_zero.to(torch.float64).reshape(-1, *[1] * (w.dim() - 1))
    y = conv(x, w, auto_pad=auto_pad, dilations=dilations, group=group, pads=pads, strides=strides)
    return y.to(torch.int32)
