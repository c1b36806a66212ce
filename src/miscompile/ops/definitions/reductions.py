"""Definitions of reductions.

https://onnx.ai/onnx/operators/onnx__ReduceSumSquare.html, onnx__ReduceLogSumExp.html
"""

import numpy as np

from miscompile.core.tensor import Array
from miscompile.ops.definitions.evaluated_call import EvaluatedCall, wide


def reduce_sum_square(given: EvaluatedCall) -> tuple[Array] | None:
    """ReduceSumSquare of integers, which keeps their type; onnx's evaluator sums them in 64 bits."""
    x = given.operand(0)
    if x.dtype.kind not in "iu":
        return None
    axes = _axes(given)
    if axes == ():
        return (x * x,)
    return (np.asarray(np.sum(x * x, axis=axes, dtype=x.dtype, keepdims=bool(given.integer("keepdims", 1)))),)


def reduce_log_sum_exp(given: EvaluatedCall) -> tuple[Array] | None:
    """ReduceLogSumExp of floats, without overflow; onnx's evaluator subtracts infinities.

    The logarithm of a sum of exponentials is infinite if an element is, and -infinity if all are.
    """
    x, axes, keep = given.operand(0), _axes(given), bool(given.integer("keepdims", 1))
    if not x.size or x.dtype.kind in "iu":
        return None
    if axes == ():
        return (x,)
    most = wide(x).max(axis=axes, keepdims=True)
    finite = np.where(np.isfinite(most), most, 0.0)
    with np.errstate(all="ignore"):
        found = np.log(np.exp(wide(x) - finite).sum(axis=axes, keepdims=True)) + finite
    return ((found if keep else found.reshape(np.sum(x, axis=axes).shape)).astype(x.dtype),)


def _axes(given: EvaluatedCall) -> tuple[int, ...] | None:
    """Return the axes that a reduction goes over, None for all; none for one that does nothing."""
    operand = given.optional(1)
    listed = given.integers("axes") if operand is None else tuple(map(int, operand.reshape(-1)))
    if listed:
        return listed
    return () if given.integer("noop_with_empty_axes", 0) else None
