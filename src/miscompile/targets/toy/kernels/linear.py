"""Kernels of linear algebra and sliding windows."""

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from miscompile.core.tensor import Array
from miscompile.targets.toy.ir import ToyCall, ToyShape
from miscompile.targets.toy.kernels.elementwise import Args, Kernel, relu


def activated(call: ToyCall, result: Array) -> Array:
    """Apply the activation that a fusion left on `call`, if there is one."""
    return relu(result) if call.get("activation") == "Relu" else result


def _matmul(call: ToyCall, args: Args) -> Array:
    return activated(call, np.asarray(np.matmul(args[0], args[1])))


def _gemm(call: ToyCall, args: Args) -> Array:
    a, b, c = (*args, None)[:3]
    a = a.T if call.get("transA", 0) else a
    b = b.T if call.get("transB", 0) else b
    result = np.asarray(np.matmul(a, b))
    alpha, beta = call.get("alpha", 1.0), call.get("beta", 1.0)
    if alpha != 1.0:
        result = (result * _factor(alpha, result)).astype(result.dtype)
    if c is not None:
        c = c if beta == 1.0 else (c * _factor(beta, c)).astype(c.dtype)
        result = result + np.broadcast_to(c, result.shape)
    return activated(call, result)


def _factor(value: float, like: Array) -> Any:  # noqa: ANN401 - a numpy scalar
    return like.dtype.type(value) if like.dtype.kind == "f" else value


def _einsum(call: ToyCall, args: Args) -> Array:
    return np.asarray(np.einsum(call.get("equation"), *args)).astype(args[0].dtype, copy=False)


def window_pads(call: ToyCall, sizes: ToyShape, kernel: ToyShape) -> list[tuple[int, int]]:
    """Return the padding before and after each spatial axis, from `pads` or `auto_pad`."""
    rank = len(sizes)
    mode, pads = call.get("auto_pad", "NOTSET"), call.get("pads", (0,) * (2 * rank))
    if mode in ("NOTSET", ""):
        return [(pads[i], pads[rank + i]) for i in range(rank)]
    if mode == "VALID":
        return [(0, 0)] * rank
    strides, dilations = call.get("strides", (1,) * rank), call.get("dilations", (1,) * rank)
    found = []
    for size, width, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        total = max(0, (-(-size // stride) - 1) * stride + (width - 1) * dilation + 1 - size)
        small, large = total // 2, total - total // 2
        found.append((small, large) if mode == "SAME_UPPER" else (large, small))
    return found


def windows(x: Array, call: ToyCall, kernel: ToyShape, fill: Any) -> Array:  # noqa: ANN401 - a number
    """Return every window of `x` [N, C, *spatial] as [N, C, *out, *kernel]; the padding is `fill`."""
    rank = len(kernel)
    pads = window_pads(call, x.shape[2:], kernel)
    padded = np.pad(x, [(0, 0), (0, 0), *pads], constant_values=fill)
    strides, dilations = call.get("strides", (1,) * rank), call.get("dilations", (1,) * rank)
    extent = tuple((width - 1) * dilation + 1 for width, dilation in zip(kernel, dilations, strict=True))
    view = sliding_window_view(padded, extent, axis=tuple(range(2, 2 + rank)))
    every = (slice(None), slice(None))
    return view[(*every, *(slice(None, None, s) for s in strides), *(slice(None, None, d) for d in dilations))]


def _conv(call: ToyCall, args: Args) -> Array:
    x, weight, bias = (*args, None)[:3]
    rank, groups = x.ndim - 2, call.get("group", 1)
    view = windows(x, call, weight.shape[2:], 0)
    per_in, per_out = weight.shape[1], weight.shape[0] // groups
    spatial = tuple(range(2 + rank, 2 + 2 * rank))
    parts = []
    for group in range(groups):
        chunk = view[:, group * per_in : (group + 1) * per_in]
        kernel = weight[group * per_out : (group + 1) * per_out]
        parts.append(np.tensordot(chunk, kernel, axes=((1, *spatial), tuple(range(1, 2 + rank)))))
    result = np.moveaxis(np.concatenate(parts, -1), -1, 1)
    if bias is not None:
        result = result + bias.reshape((-1,) + (1,) * rank)
    return activated(call, np.asarray(result).astype(x.dtype, copy=False))


def _max_pool(call: ToyCall, args: Args) -> Array:
    x, kernel = args[0], tuple(call.get("kernel_shape"))
    low = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    view = windows(x, call, kernel, low)
    return np.asarray(view.max(tuple(range(-len(kernel), 0))))


def _average_pool(call: ToyCall, args: Args) -> Array:
    x, kernel = args[0], tuple(call.get("kernel_shape"))
    axes = tuple(range(-len(kernel), 0))
    total = windows(x, call, kernel, 0).sum(axes, dtype=x.dtype)
    if call.get("count_include_pad", 0):
        return np.asarray(total / x.dtype.type(int(np.prod(kernel))))
    return np.asarray(total / windows(np.ones_like(x), call, kernel, 0).sum(axes, dtype=x.dtype))


def _global_average_pool(_: ToyCall, args: Args) -> Array:
    return np.asarray(np.mean(args[0], tuple(range(2, args[0].ndim)), keepdims=True))


def _global_max_pool(_: ToyCall, args: Args) -> Array:
    return np.asarray(np.max(args[0], tuple(range(2, args[0].ndim)), keepdims=True))


KERNELS: dict[str, Kernel] = {
    "MatMul": _matmul, "Gemm": _gemm, "Conv": _conv, "Einsum": _einsum, "MaxPool": _max_pool,
    "AveragePool": _average_pool, "GlobalAveragePool": _global_average_pool, "GlobalMaxPool": _global_max_pool,
}  # fmt: skip
