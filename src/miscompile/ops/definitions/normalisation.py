"""Definitions of normalisations.

https://onnx.ai/onnx/operators/onnx__BatchNormalization.html, onnx__LayerNormalization.html, onnx__LRN.html,
onnx__LpNormalization.html, onnx__Dropout.html
"""

import numpy as np

from miscompile.base.dtypes import BY_CODE
from miscompile.core.tensor import Array, tensor
from miscompile.graph.foreign import to_foreign
from miscompile.ops.definitions.evaluated_call import EvaluatedCall, wide

_TEST_BY_RESULTS, _TEST_BY_ATTRIBUTE = 7, 14
"""The opsets since which the number of results, and then an attribute, tells whether BatchNormalization trains."""
_RATIO_AS_OPERAND, _MASK_OF_BOOL = 12, 10


def batch_normalization(given: EvaluatedCall) -> tuple[Array, ...] | None:
    """BatchNormalization by the mean and the variance that it gets.

    onnx's evaluator takes the statistics of the batch before opset 14. Training is left to it.
    """
    if _trains(given):
        return None
    x, *parameters = (given.operand(place) for place in range(5))
    spatial = bool(given.integer("spatial", 1))
    shape = (1, -1, *(1 for _ in x.shape[2:])) if spatial else (1, *x.shape[1:])
    shape = shape if x.ndim > 1 else (-1,)  # one channel
    scale, bias, mean, variance = (wide(one).reshape(shape) for one in parameters)
    scaled = (wide(x) - mean) / np.sqrt(variance + given.real("epsilon", 1e-5)) * scale + bias
    return (scaled.astype(x.dtype),)


def _trains(given: EvaluatedCall) -> bool:
    if given.opset >= _TEST_BY_ATTRIBUTE:
        return bool(given.integer("training_mode", 0))
    if given.opset >= _TEST_BY_RESULTS:
        return sum(given.named) > 1
    return not given.integer("is_test", 0)


def layer_normalization(given: EvaluatedCall) -> tuple[Array, ...]:
    """LayerNormalization; onnx's evaluator gives Mean and InvStdDev the type of X instead of that of the stash."""
    x, axis = given.operand(0), given.integer("axis", -1)
    axes, bias = tuple(range(axis % x.ndim, x.ndim)), given.optional(2)
    stash = to_foreign(tensor(np.zeros(0), BY_CODE[given.integer("stash_type", 1)].name)).dtype
    mean = wide(x).mean(axes, keepdims=True)
    inverse = 1 / np.sqrt(wide(x).var(axes, keepdims=True) + given.real("epsilon", 1e-5))
    scaled = (wide(x) - mean) * inverse * wide(given.operand(1)) + (0.0 if bias is None else wide(bias))
    found = scaled.astype(x.dtype), mean.astype(stash), inverse.astype(stash)
    return found[: len(given.named)]


def dropout(given: EvaluatedCall) -> tuple[Array, ...] | None:
    """Dropout before opset 12 outside of training, where it drops nothing."""
    if given.opset >= _RATIO_AS_OPERAND or (given.opset < _TEST_BY_RESULTS and not given.integer("is_test", 0)):
        return None
    if len(given.named) > 1 and given.opset < _MASK_OF_BOOL:
        return None  # the page contradicts itself about the type of the mask
    x = given.operand(0)
    return (x, np.ones(x.shape, np.bool_))[: len(given.named)]


def local_response(given: EvaluatedCall) -> tuple[Array]:
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


def lp_normalization(given: EvaluatedCall) -> tuple[Array]:
    """LpNormalization: the elements divided by the norm of an axis; zero where the norm is zero.

    onnx's evaluator sums the elements of the norm of first order with their signs.
    """
    x, axis, p = given.operand(0), given.integer("axis", -1), given.integer("p", 2)
    sizes = np.abs(wide(x)).sum(axis, keepdims=True) if p == 1 else np.sqrt((wide(x) ** 2).sum(axis, keepdims=True))
    return (np.divide(wide(x), sizes, out=np.zeros_like(sizes * wide(x)), where=sizes != 0).astype(x.dtype),)
