"""Definitions of operators that select elements or sizes.

https://onnx.ai/onnx/operators/onnx__OneHot.html, onnx__Unique.html, onnx__Shape.html
"""

import numpy as np

from miscompile.core.tensor import Array
from miscompile.ops.definitions.evaluated_call import EvaluatedCall

_FROM_THE_END = 11
"""The opset since which OneHot counts negative indices from the end."""


def one_hot(given: EvaluatedCall) -> tuple[Array]:
    """OneHot: `on` where an index equals its place along the new axis, `off` elsewhere.

    onnx's evaluator computes off + (on - off), which rounds and overflows.
    """
    indices, depth = given.operand(0).astype(np.int64), int(given.operand(1).reshape(-1)[0])
    off, on = given.operand(2)
    axis = given.integer("axis", -1) % (indices.ndim + 1)
    if given.opset >= _FROM_THE_END:
        indices = np.where(indices < 0, indices + depth, indices)
    places = np.arange(depth).reshape([-1 if place == axis else 1 for place in range(indices.ndim + 1)])
    result = np.full(
        np.broadcast_shapes(places.shape, np.expand_dims(indices, axis).shape), off, given.operand(2).dtype
    )
    result[places == np.expand_dims(indices, axis)] = on
    return (result,)


def unique(given: EvaluatedCall) -> tuple[Array, ...]:
    """Unique: the distinct elements, or slices along an axis, sorted or in the order of their first places.

    onnx's evaluator sorts them in any case if only they have a name, and takes the slices of the first axis.
    """
    x, axis = given.operand(0), given.attributes.get("axis")
    y, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    order = np.arange(len(first)) if given.integer("sorted", 1) else np.argsort(first)
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    found = (
        np.take(y, order, 0 if axis is None else int(axis)),
        first[order],
        places[inverse.reshape(-1)],
        counts[order],
    )
    return found[0], *(one.astype(np.int64) for one in found[1 : len(given.named)])


def shape(given: EvaluatedCall) -> tuple[Array]:
    """Shape: the sizes between two axes, which are clamped to the rank.

    onnx's evaluator counts an end before the first axis from the back again.
    """
    x = given.operand(0)
    start, end = given.integer("start", 0), given.integer("end", x.ndim)
    first, last = (min(max(one + x.ndim if one < 0 else one, 0), x.ndim) for one in (start, end))
    return (np.array(x.shape[first:last], np.int64),)
