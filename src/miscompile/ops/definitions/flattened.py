"""Definitions of Softmax and its kin before opset 13, when they took their operand for a matrix.

The page of Softmax-11 (https://onnx.ai/onnx/operators/onnx__Softmax.html#softmax-11): the axes from `axis` on are
joined to one, over which the operator normalises. onnx's evaluator computes the newer operators in any opset.
"""

import math
from collections.abc import Callable

import numpy as np

from miscompile.core.tensor import Array
from miscompile.ops.definitions.evaluated_call import Definition, EvaluatedCall, wide

_OF_ONE_AXIS = 13


def _of_matrix(function: Callable[[Array], Array]) -> Definition:
    def define(given: EvaluatedCall) -> tuple[Array] | None:
        if given.opset >= _OF_ONE_AXIS:
            return None
        x, axis = given.operand(0), given.integer("axis", 1)
        if not -x.ndim <= axis < max(x.ndim, 1):
            raise ValueError(f"axis {axis} of {x.ndim}")
        rows = math.prod(x.shape[: axis + x.ndim if axis < 0 else axis])
        if not x.size:
            return (x,)
        return (function(wide(x).reshape(rows, -1)).reshape(x.shape).astype(x.dtype),)

    return define


def _log_softmax(rows: Array) -> Array:
    moved = rows - rows.max(1, keepdims=True)
    return np.asarray(moved - np.log(np.exp(moved).sum(1, keepdims=True)))


def _hardmax(rows: Array) -> Array:
    found = np.zeros_like(rows)
    found[np.arange(len(rows)), rows.argmax(1)] = 1
    return found


log_softmax = _of_matrix(_log_softmax)
softmax = _of_matrix(lambda rows: np.exp(_log_softmax(rows)))
hardmax = _of_matrix(_hardmax)
