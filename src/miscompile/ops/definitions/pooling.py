"""Definitions of pooling.

https://onnx.ai/onnx/operators/onnx__AveragePool.html, onnx__MaxPool.html, onnx__LpPool.html,
onnx__GlobalAveragePool.html, onnx__GlobalMaxPool.html, onnx__GlobalLpPool.html

Every window is a product of windows along the axes, so the axes are reduced one after the other. X has the shape
(batch, channels, spatial axes...), and a result the same with the numbers of windows.
"""

import math
from typing import Any

import numpy as np

from miscompile.core.tensor import Array
from miscompile.ops.definitions.evaluated_call import EvaluatedCall, wide
from miscompile.ops.definitions.windows import Windows, fitting_windows


def average_pool(given: EvaluatedCall) -> tuple[Array]:
    """AveragePool: the sum of each window, divided by its number of elements.

    With count_include_pad, padding counts as elements, but not what ceil_mode lets a window reach behind it. onnx's
    evaluator refuses ceil_mode with auto_pad, and ignores dilations there.

    A window of padding only has NaN, 0 / 0: the page does not speak of it.
    """
    x = given.operand(0)
    axes = fitting_windows(given, x.shape[2:])
    included = bool(given.integer("count_include_pad", 0))
    divisors = np.ones((1, 1), np.float32)
    for one in axes:
        divisors = divisors[..., None] * (one.padded() if included else one.inside()).sum(axis=1)
    with np.errstate(invalid="ignore", over="ignore"):
        return ((_sums(wide(x), axes) / divisors).astype(x.dtype),)


def lp_pool(given: EvaluatedCall) -> tuple[Array] | None:
    """LpPool: the norm of order p of each window, in which padding counts as zeros.

    onnx's evaluator multiplies the mean of a window that reaches behind the padded axis, for ceil_mode, by the number
    of elements of a whole one.

    Before opset 2, p is a float and kernel_shape may be left out: that is left to onnx.
    """
    x, p = given.operand(0), given.integer("p", 2)
    if given.opset < 2 or p < 1:
        return None
    with np.errstate(over="ignore", under="ignore"):
        return ((_sums(np.abs(wide(x)) ** p, fitting_windows(given, x.shape[2:])) ** (1 / p)).astype(x.dtype),)


def max_pool(given: EvaluatedCall) -> tuple[Array, Array]:
    """MaxPool: the largest element of each window and, as Indices, its place in the flat X.

    Of equal elements it is the first of the window, and NaN is larger than any number. storage_order 1 counts the
    spatial axes of each image with the first one fastest. onnx's evaluator moves the windows of SAME_LOWER, for one.

    A window of padding only has -infinity, or the lowest integer, and -1 as its place: the page does not speak of it.
    """
    x = given.operand(0)
    # Ranks compare as the elements do, and leave -1 free for padding, which no element is equal to.
    ranks = np.unique(wide(x), return_inverse=True)[1].reshape(x.shape)
    places = np.arange(x.size).reshape(x.shape)
    for axis, one in reversed(list(enumerate(fitting_windows(given, x.shape[2:]), start=2))):
        # From the last axis to the first, the first of the largest is the first in the order of the whole window.
        taken = one.taken(ranks, axis, -1)
        first = np.expand_dims(taken.argmax(axis + 1), axis + 1)
        ranks = np.take_along_axis(taken, first, axis + 1).squeeze(axis + 1)
        places = np.take_along_axis(one.taken(places, axis, -1), first, axis + 1).squeeze(axis + 1)
    values = np.append(x.reshape(-1), _lowest(x.dtype))[places]  # the place -1 takes what is appended
    return values, _by_columns(places, x.shape) if given.integer("storage_order", 0) else places


def global_max_pool(given: EvaluatedCall) -> tuple[Array]:
    """GlobalMaxPool: the largest element of each channel. onnx's evaluator is right with two spatial axes only."""
    x = given.operand(0)
    return (wide(x).max(axis=tuple(range(2, x.ndim)), keepdims=True, initial=-np.inf).astype(x.dtype),)


def global_average_pool(given: EvaluatedCall) -> tuple[Array]:
    """GlobalAveragePool: the mean of each channel, NaN for no elements.

    onnx's evaluator refuses an empty batch, and sums in the type of X, in which a sum of bfloat16 soon stands still.
    """
    x = given.operand(0)
    with np.errstate(over="ignore", invalid="ignore"):
        sums = wide(x).sum(axis=tuple(range(2, x.ndim)), keepdims=True)
        return (np.divide(sums, math.prod(x.shape[2:])).astype(x.dtype),)


def global_lp_pool(given: EvaluatedCall) -> tuple[Array] | None:
    """GlobalLpPool: the norm of order p of each channel, which onnx's evaluator does not have.

    p is a float before opset 2, and an integer since.
    """
    x, p = given.operand(0), given.real("p", 2)
    if p <= 0:
        return None  # no norm
    with np.errstate(over="ignore", under="ignore"):
        sums = (np.abs(wide(x)) ** p).sum(axis=tuple(range(2, x.ndim)), keepdims=True)
        return ((sums ** (1 / p)).astype(x.dtype),)


def _sums(values: Array, axes: tuple[Windows, ...]) -> Array:
    for axis, one in enumerate(axes, start=2):
        values = one.taken(values, axis, 0).sum(axis=axis + 1)
    return values


def _lowest(dtype: np.dtype[Any]) -> Array:
    """Return the lowest number of a type as an array of one element."""
    lowest = np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf
    return np.array([lowest]).astype(dtype)


def _by_columns(places: Array, shape: tuple[int, ...]) -> Array:
    """Return flat places in a tensor of `shape` with the spatial axes counted in reverse, the first one fastest."""
    image = math.prod(shape[2:])
    if not image:
        return places
    spatial = np.unravel_index(np.where(places < 0, 0, places) % image, shape[2:])
    within = np.ravel_multi_index(spatial, shape[2:], order="F")
    return np.where(places < 0, places, places // image * image + within)
