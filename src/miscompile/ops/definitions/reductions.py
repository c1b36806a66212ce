"""Definitions of reductions. https://onnx.ai/onnx/operators/onnx__ReduceSumSquare.html"""

import numpy as np

from miscompile.core.tensor import Array
from miscompile.ops.definitions.evaluated_call import EvaluatedCall


def reduce_sum_square(given: EvaluatedCall) -> tuple[Array] | None:
    """ReduceSumSquare of integers, which keeps their type; onnx's evaluator sums them in 64 bits."""
    x = given.operand(0)
    if x.dtype.kind not in "iu":
        return None
    operand = given.optional(1)
    listed = given.integers("axes") if operand is None else tuple(map(int, operand))
    if not listed and given.integer("noop_with_empty_axes", 0):
        return (x * x,)
    axes, keep = tuple(listed) if listed else None, bool(given.integer("keepdims", 1))
    return (np.asarray(np.sum(x * x, axis=axes, dtype=x.dtype, keepdims=keep)),)
