"""Definitions of quantised operators. https://onnx.ai/onnx/operators/onnx__QLinearConv.html"""

import math
from dataclasses import replace

import numpy as np

from miscompile.core.tensor import Array
from miscompile.ops.definitions.evaluated_call import EvaluatedCall, wide
from miscompile.ops.definitions.windows import fitting_windows


def qlinear_conv(given: EvaluatedCall) -> tuple[Array]:
    """QLinearConv: an exact convolution of integers, scaled and rounded once.

    onnx's evaluator broadcasts the scales of filters over images only.
    """
    x, w = (_centred(given.operand(place), given.operand(place + 2), axis) for place, axis in ((0, 1), (3, 0)))
    sums = _convolved(given, x, w)
    along = (-1, *(1 for _ in sums.shape[2:]))  # one number for each filter, which is axis 1 of the result
    if (bias := given.optional(8)) is not None:
        sums = sums + wide(bias).reshape(along)
    scale = given.operand(1) * given.operand(4) / given.operand(6)
    zero = given.operand(7)
    limits = np.iinfo(zero.dtype)
    scaled = np.rint(sums * wide(scale).reshape(along if scale.size > 1 else ())) + wide(zero).reshape(-1)[0]
    return (np.clip(scaled, limits.min, limits.max).astype(zero.dtype),)


def _centred(value: Array, zero: Array, axis: int) -> Array:
    """Return numbers without their zero point, of which there may be one for each place on an axis."""
    shape = [-1 if place == axis else 1 for place in range(value.ndim)] if zero.size > 1 else ()
    return np.asarray(wide(value) - wide(zero).reshape(shape))


def _convolved(given: EvaluatedCall, x: Array, w: Array) -> Array:
    """Return the convolution of integers in double precision, which holds their sums exactly."""
    groups, filters, kernel = given.integer("group", 1), w.shape[0], w.shape[2:]
    spatial = fitting_windows(replace(given, attributes={**given.attributes, "kernel_shape": kernel}), x.shape[2:])
    for place, one in enumerate(spatial):
        x = one.taken(x, 2 + 2 * place, 0.0)  # every axis becomes two: windows and their places
    counts = [len(one.places) for one in spatial]
    order = (0, 1, *range(2, x.ndim, 2), *range(3, x.ndim, 2))
    taken = x.transpose(order).reshape(len(x), groups, x.shape[1] // groups, math.prod(counts), math.prod(kernel))
    parts = w.reshape(groups, filters // groups, w.shape[1], math.prod(kernel))
    return np.asarray(np.einsum("ngcpk,gfck->ngfp", taken, parts)).reshape(len(x), filters, *counts)
