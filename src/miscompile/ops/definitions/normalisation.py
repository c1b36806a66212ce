"""Definitions of normalisations.

https://onnx.ai/onnx/operators/onnx__LRN.html, onnx__LpNormalization.html
"""

import numpy as np

from miscompile.core.tensor import Array
from miscompile.ops.definitions.given import Given, wide


def local_response(given: Given) -> tuple[Array]:
    """LRN: each element divided by a power of the sum of squares of its neighbours in the axis of channels.

    onnx's evaluator goes over the batch instead of the channels, and takes four dimensions only.
    """
    x, size = given.operand(0), given.integer("size", 1)
    alpha, beta, bias = given.real("alpha", 1e-4), given.real("beta", 0.75), given.real("bias", 1.0)
    squares = wide(x) ** 2
    sums = np.zeros_like(squares)
    before, behind = (size - 1) // 2, size // 2  # floor and ceil of (size - 1) / 2
    for channel in range(x.shape[1]):
        begin, end = max(0, channel - before), min(x.shape[1], channel + behind + 1)
        sums[:, channel] = squares[:, begin:end].sum(axis=1)
    return ((wide(x) / (bias + alpha / size * sums) ** beta).astype(x.dtype),)


def lp_normalization(given: Given) -> tuple[Array]:
    """LpNormalization: the elements divided by the norm of an axis; zero where the norm is zero.

    onnx's evaluator sums the elements of the norm of first order with their signs.
    """
    x, axis, p = given.operand(0), given.integer("axis", -1), given.integer("p", 2)
    sizes = np.abs(wide(x)).sum(axis, keepdims=True) if p == 1 else np.sqrt((wide(x) ** 2).sum(axis, keepdims=True))
    return (np.divide(wide(x), sizes, out=np.zeros(x.shape), where=sizes != 0).astype(x.dtype),)
