"""Definitions of operators that compute each element by itself.

https://onnx.ai/onnx/operators/onnx__Erf.html, onnx__Shrink.html, onnx__Cast.html, onnx__CastLike.html,
onnx__LeakyRelu.html, onnx__PRelu.html
"""

import math

import numpy as np

from miscompile.base.dtypes import BY_CODE, SMALL_INTEGERS
from miscompile.core.tensor import Array, tensor
from miscompile.graph.foreign import from_foreign, to_foreign
from miscompile.ops.definitions.evaluated_call import EvaluatedCall, wide

_ERF = np.vectorize(math.erf, otypes=[np.float64])


def erf(given: EvaluatedCall) -> tuple[Array]:
    """Erf in the precision of its operand; onnx's evaluator rounds it to float32."""
    x = given.operand(0)
    return (np.asarray(_ERF(wide(x))).astype(x.dtype),)


def shrink(given: EvaluatedCall) -> tuple[Array] | None:
    """Shrink of integers by whole numbers; onnx's evaluator computes it in float64, which 64 bits do not fit."""
    x, bias, bound = given.operand(0), given.real("bias", 0.0), given.real("lambd", 0.5)
    if x.dtype.kind not in "iu" or not bias.is_integer() or abs(bias) >= 2.0**31 or not math.isfinite(bound):
        return None
    step = np.array(int(bias)).astype(x.dtype)
    below = x < math.ceil(-bound) if x.dtype.kind == "i" or bound <= 0 else np.zeros(x.shape, bool)
    above = x > math.floor(bound) if bound >= 0 or x.dtype.kind == "i" else np.ones(x.shape, bool)
    return (np.where(below, x + step, np.where(above, x - step, np.zeros_like(x))),)


def leaky_relu(given: EvaluatedCall) -> tuple[Array]:
    """LeakyRelu: alpha * x below zero, x elsewhere. onnx's evaluator adds both, of which one is zero or NaN."""
    x = given.operand(0)
    with np.errstate(all="ignore"):
        return (np.where(wide(x) < 0, given.real("alpha", 0.01) * wide(x), wide(x)).astype(x.dtype),)


def p_relu(given: EvaluatedCall) -> tuple[Array] | None:
    """PRelu: slope * x below zero, x elsewhere. onnx's evaluator multiplies zero as well.

    Before operator set 7, one slope for each channel is not broadcast as arrays are: that is left to onnx.
    """
    x, slope = given.operand(0), given.operand(1)
    if given.opset < 7 or np.broadcast_shapes(x.shape, slope.shape) != x.shape:
        return None
    with np.errstate(all="ignore"):
        return (np.where(x < 0, x * slope, x).astype(x.dtype),)


def cast(given: EvaluatedCall) -> tuple[Array] | None:
    """Cast between integers of fewer than eight bits, which wrap around; onnx's evaluator has no such conversion."""
    return _between_small(given.operand(0), BY_CODE[given.integer("to", 0)].name)


def cast_like(given: EvaluatedCall) -> tuple[Array] | None:
    """CastLike between integers of fewer than eight bits."""
    return _between_small(given.operand(0), from_foreign(given.operand(1)).dtype)


def _between_small(x: Array, target: str) -> tuple[Array] | None:
    source = from_foreign(x)
    if source.dtype == target or not {source.dtype, target} <= set(SMALL_INTEGERS):
        return None
    return (to_foreign(tensor(source.numbers().astype(np.int64), target)),)
