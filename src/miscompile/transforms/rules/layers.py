"""Entries of the language that contract axes or slide windows: MatMul, Gemm, Conv, pooling, BatchNormalization.

Canonical parameters: pads are explicit (the begins of all spatial axes, then their ends), strides and dilations always
given. Layers take one or two spatial axes. Pads of a pool are smaller than its kernel, as runtimes require. Windows
that cover padding alone are ill-formed, because their result is undefined for MaxPool, and NaN for an average that does
not count padding.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from miscompile.core.tensor import Array
from miscompile.transforms.rules.kinds import (
    CONVOLVED,
    FLOATING,
    NORMALISED,
    POOLED,
    WIDE,
    Parameters,
    TermOperator,
    TermType,
    TermTypes,
    broadcast,
    widened,
)


def _product(types: TermTypes, parameters: Parameters, output: int) -> TermType | None:
    (dtype, x), (other, y) = types
    if dtype != other or not x or not y or x[-1] != y[-2 if len(y) > 1 else 0]:
        return None
    batch = broadcast(x[:-2], y[:-2])
    if batch is None:
        return None
    return TermType(dtype, (*batch, *(x[-2:-1] if len(x) > 1 else ()), *(y[-1:] if len(y) > 1 else ())))


def _product_value(arrays: tuple[Array, ...], parameters: Parameters, output: int) -> Array:
    x, y = arrays
    return np.asarray(np.matmul(widened(x), widened(y))).astype(x.dtype)


def _gemm(types: TermTypes, parameters: Parameters, output: int) -> TermType | None:
    if len(types) not in (2, 3) or any(t.dtype != types[0].dtype for t in types):
        return None
    alpha, beta, left, right = parameters
    if types[0].dtype not in FLOATING and not (float(alpha).is_integer() and float(beta).is_integer()):
        return None
    x, y = types[0].shape, types[1].shape
    if len(x) != 2 or len(y) != 2 or not {left, right} <= {0, 1} or x[1 - left] != y[right]:
        return None
    shape = (x[left], y[1 - right])
    if len(types) == 3 and broadcast(types[2].shape, shape) != shape:
        return None
    return TermType(types[0].dtype, shape)


def _gemm_value(arrays: tuple[Array, ...], parameters: Parameters, output: int) -> Array:
    alpha, beta, left, right = parameters
    x, y = (widened(a.T if turned else a) for a, turned in zip(arrays, (left, right), strict=False))
    found = np.matmul(x, y) * x.dtype.type(alpha)
    if len(arrays) == 3:
        found = found + widened(arrays[2]) * x.dtype.type(beta)
    return np.asarray(found).astype(arrays[0].dtype)


def window_sizes(
    sizes: tuple[int, ...],
    kernel: tuple[int, ...],
    pads: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
) -> tuple[int, ...] | None:
    """Return the spatial sizes of a layer's result (ceil_mode 0); None without a window or with invalid parameters."""
    rank = len(sizes)
    if rank not in (1, 2) or not len(kernel) == len(strides) == len(dilations) == rank or len(pads) != 2 * rank:
        return None
    if min(pads) < 0 or min(strides) < 1 or min(dilations) < 1 or min(kernel) < 1:
        return None
    spans = [(tap - 1) * dilation + 1 for tap, dilation in zip(kernel, dilations, strict=True)]
    padded = [size + pads[axis] + pads[rank + axis] for axis, size in enumerate(sizes)]
    if any(size < 1 for size in sizes) or any(size < span for size, span in zip(padded, spans, strict=True)):
        return None
    return tuple((size - span) // stride + 1 for size, span, stride in zip(padded, spans, strides, strict=True))


def pad_spatially(data: Array, pads: tuple[int, ...], fill: float) -> Array:
    """Return `data` with its spatial axes padded by `fill`."""
    rank = data.ndim - 2
    if not any(pads):
        return data
    return np.pad(data, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)], constant_values=fill)


def window_view(data: Array, kernel: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...]) -> Array:
    """Return all windows of padded `data`: [N, C, *places, *taps]."""
    rank = len(kernel)
    spans = tuple((tap - 1) * dilation + 1 for tap, dilation in zip(kernel, dilations, strict=True))
    found = sliding_window_view(data, spans, tuple(range(2, 2 + rank)))
    steps = (
        slice(None),
        slice(None),
        *(slice(None, None, s) for s in strides),
        *(slice(None, None, d) for d in dilations),
    )
    return found[steps]


def _convolved(types: TermTypes, parameters: Parameters, output: int) -> TermType | None:
    if len(types) not in (2, 3) or any(t.dtype != types[0].dtype for t in types):
        return None
    group, kernel, pads, strides, dilations = parameters
    x, w = types[0].shape, types[1].shape
    if len(x) != len(w) or w[2:] != kernel or len(x) not in (3, 4) or group < 1 or 0 in x or 0 in w:
        return None
    if x[1] != w[1] * group or w[0] % group or (len(types) == 3 and types[2].shape != (w[0],)):
        return None
    spatial = window_sizes(x[2:], kernel, pads, strides, dilations)
    return None if spatial is None else TermType(types[0].dtype, (x[0], w[0], *spatial))


def _conv_value(arrays: tuple[Array, ...], parameters: Parameters, output: int) -> Array:
    group, kernel, pads, strides, dilations = parameters
    x, w = widened(arrays[0]), widened(arrays[1])
    windows = window_view(pad_spatially(x, pads, 0), kernel, strides, dilations)
    rank = w.ndim - 2
    windows = windows.reshape(x.shape[0], group, x.shape[1] // group, *windows.shape[2:])
    weights = w.reshape(group, w.shape[0] // group, *w.shape[1:])
    found = np.einsum(_CONTRACTION[rank], windows, weights)
    found = found.reshape(x.shape[0], w.shape[0], *found.shape[3:])
    if len(arrays) == 3:
        found = found + widened(arrays[2]).reshape(-1, *[1] * rank)
    return np.asarray(found).astype(arrays[0].dtype)


_CONTRACTION = {1: "ngcpt,goct->ngop", 2: "ngcpqtu,goctu->ngopq"}
"""By spatial axes; n is the batch, g groups, c channels in, o channels out, p and q places, t and u taps."""


def _covered(
    sizes: tuple[int, ...],
    kernel: tuple[int, ...],
    pads: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    places: tuple[int, ...],
) -> bool:
    """Tell whether every window has a tap on the data."""
    for size, taps, before, stride, dilation, count in zip(
        sizes, kernel, pads, strides, dilations, places, strict=False
    ):
        for place in range(count):
            start = place * stride - before
            if not any(0 <= start + tap * dilation < size for tap in range(taps)):
                return False
    return True


def _pooled(types: TermTypes, parameters: Parameters, output: int) -> TermType | None:
    dtype, shape = types[0]
    kernel, pads, strides, dilations = parameters[:4]
    if len(shape) not in (3, 4) or 0 in shape:
        return None
    places = window_sizes(shape[2:], kernel, pads, strides, dilations)
    wide = any(pad >= taps for pad, taps in zip(pads, (*kernel, *kernel), strict=False))
    if places is None or wide or not _covered(shape[2:], kernel, pads, strides, dilations, places):
        return None
    return TermType(dtype, (*shape[:2], *places))


def _max_pool_value(arrays: tuple[Array, ...], parameters: Parameters, output: int) -> Array:
    kernel, pads, strides, dilations = parameters
    data = widened(arrays[0])
    lowest = -np.inf if data.dtype.kind == "f" else np.iinfo(data.dtype).min
    windows = window_view(pad_spatially(data, pads, lowest), kernel, strides, dilations)
    return np.asarray(windows.max(tuple(range(-len(kernel), 0)))).astype(arrays[0].dtype)


def _average_pool_value(arrays: tuple[Array, ...], parameters: Parameters, output: int) -> Array:
    kernel, pads, strides, dilations, counted = parameters
    data = widened(arrays[0])
    taps = tuple(range(-len(kernel), 0))
    sums = window_view(pad_spatially(data, pads, 0), kernel, strides, dilations).sum(taps, dtype=data.dtype)
    ones = np.ones_like(data)
    whole = np.ones_like(pad_spatially(ones, pads, 0)) if counted else pad_spatially(ones, pads, 0)
    counts = window_view(whole, kernel, strides, dilations).sum(taps, dtype=data.dtype)
    return np.asarray(sums / counts).astype(arrays[0].dtype)


def _normalised(types: TermTypes, parameters: Parameters, output: int) -> TermType | None:
    data = types[0]
    if len(data.shape) < 2 or any(t != TermType(data.dtype, (data.shape[1],)) for t in types[1:]):
        return None
    return data


def _normalised_value(arrays: tuple[Array, ...], parameters: Parameters, output: int) -> Array:
    data = widened(arrays[0])
    along = (-1, *[1] * (data.ndim - 2))
    scale, bias, mean, variance = (widened(a).reshape(along) for a in arrays[1:])
    found = (data - mean) / np.sqrt(variance + data.dtype.type(parameters[0])) * scale + bias
    return np.asarray(found).astype(arrays[0].dtype)


OPERATORS = (
    TermOperator("MatMul", 2, (), _product, _product_value, WIDE),
    TermOperator("Gemm", None, ("alpha", "beta", "transA", "transB"), _gemm, _gemm_value, WIDE),
    TermOperator("Conv", None, ("group", "kernel", "pads", "strides", "dilations"), _convolved, _conv_value, CONVOLVED),
    TermOperator("MaxPool", 1, ("kernel", "pads", "strides", "dilations"), _pooled, _max_pool_value, POOLED),
    TermOperator(
        "AveragePool", 1, ("kernel", "pads", "strides", "dilations", "counted"), _pooled, _average_pool_value, CONVOLVED
    ),
    TermOperator("BatchNormalization", 5, ("epsilon",), _normalised, _normalised_value, NORMALISED),
)
