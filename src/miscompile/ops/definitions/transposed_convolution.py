"""The definition of ConvTranspose, https://onnx.ai/onnx/operators/onnx__ConvTranspose.html."""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from miscompile.core.tensor import Array
from miscompile.ops.definitions.evaluated_call import EvaluatedCall, wide


def transposed_convolution(given: EvaluatedCall) -> tuple[Array]:
    """ConvTranspose: each element of X adds the kernel, times the element, at a multiple of the strides.

    X has the shape (batch, channels, spatial axes...), W (channels, features / group, kernel...), B (features). The
    whole sum has stride * (size - 1) + extent of the kernel elements along an axis, and padding cuts at both ends.

    onnx's evaluator refuses most groups, confuses the features of others, and refuses output_shape without auto_pad.
    """
    x, w, bias = given.operand(0), given.operand(1), given.optional(2)
    rank, group = x.ndim - 2, given.integer("group", 1)
    strides, dilations = given.integers("strides") or (1,) * rank, given.integers("dilations") or (1,) * rank
    if given.integers("kernel_shape") not in (None, w.shape[2:]):
        raise ValueError("kernel_shape is not that of the weights")
    begins, sizes = _cut(given, x.shape[2:], w.shape[2:], strides, dilations)
    with np.errstate(over="ignore", invalid="ignore"):
        whole = _whole(wide(x), wide(w), group, strides, dilations)
        y = np.zeros((*whole.shape[:2], *sizes), whole.dtype)
        parts = [slice(begin, begin + size) for begin, size in zip(begins, sizes, strict=True)]
        cut = whole[(slice(None), slice(None), *parts)]
        y[tuple(slice(size) for size in cut.shape)] = cut  # output_padding and output_shape may ask for more: zeros
        if bias is not None:
            y += wide(bias).reshape(-1, *(1 for _ in sizes))
        return (y.astype(x.dtype),)


def _cut(
    given: EvaluatedCall,
    spatial: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> tuple[list[int], list[int]]:
    """Return for each axis where the result begins in the whole sum, and its size."""
    rank, auto_pad = len(spatial), given.text("auto_pad", "NOTSET")
    wanted, added = given.integers("output_shape"), given.integers("output_padding") or (0,) * rank
    pads = given.integers("pads") if auto_pad == "NOTSET" else None
    if wanted is None and auto_pad.startswith("SAME"):
        wanted = tuple(size * stride for size, stride in zip(spatial, strides, strict=True))
    begins, sizes = [], []
    for axis in range(rank):
        extent = (kernel[axis] - 1) * dilations[axis] + 1
        whole = strides[axis] * (spatial[axis] - 1) + added[axis] + extent
        if wanted is None:
            begin, end = (pads[axis], pads[axis + rank]) if pads else (0, 0)
            size = whole - begin - end
        else:
            begin, size = _begin(whole - wanted[axis], auto_pad), wanted[axis]
        if size < 0:
            raise ValueError(f"a size of {size}")
        begins.append(begin)
        sizes.append(size)
    return begins, sizes


def _begin(total: int, auto_pad: str) -> int:
    """Return the padding at the begin of an axis that has `total`, which is negative where more than all is wanted.

    Half of it, rounded up except with SAME_UPPER. The page of opset 1 has the two the other way round in its equations,
    against its own description of auto_pad; opset 11 put that right, and implementations follow it for all sets. The
    page leaves the rounding of negative halves open. As in ONNX Runtime, what is wanted beyond all comes at the end.
    """
    total = max(0, total)
    return total // 2 if auto_pad == "SAME_UPPER" else total - total // 2


def _whole(x: Array, w: Array, group: int, strides: Sequence[int], dilations: Sequence[int]) -> Array:
    """Return the whole sum, of shape (batch, features, spatial axes...)."""
    batch, channels, *spatial = x.shape
    features, kernel = w.shape[1], w.shape[2:]
    extents = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]
    sizes = [
        max(0, stride * (size - 1) + extent) for stride, size, extent in zip(strides, spatial, extents, strict=True)
    ]
    whole = np.zeros((batch, group, features, *sizes), x.dtype)
    if not x.size:
        return whole.reshape(batch, group * features, *sizes)
    grouped = x.reshape(batch, group, channels // group, *spatial)
    weights = w.reshape(group, channels // group, features, math.prod(kernel))
    for number, place in enumerate(itertools.product(*map(range, kernel))):
        added = np.einsum("bgc...,gcf->bgf...", grouped, weights[..., number])
        begins = [step * at for step, at in zip(dilations, place, strict=True)]
        parts = [
            slice(begin, begin + stride * (size - 1) + 1, stride)
            for begin, stride, size in zip(begins, strides, spatial, strict=True)
        ]
        whole[(slice(None), slice(None), slice(None), *parts)] += added
    return whole.reshape(batch, group * features, *sizes)
