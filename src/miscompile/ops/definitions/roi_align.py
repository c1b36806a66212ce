"""The definition of RoiAlign, https://onnx.ai/onnx/operators/onnx__RoiAlign.html."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from miscompile.core.tensor import Array
from miscompile.ops.definitions.evaluated_call import EvaluatedCall, wide

_MOST_SAMPLES = 2048
"""Sampled locations along an axis: all of both axes are laid out at once."""


@dataclass(frozen=True, slots=True)
class _Samples:
    """Sampled locations along one axis of the image: the elements below and above each, and how much each counts.

    All have the shape (bins, samples). A location more than one element outside the image counts nothing.
    """

    below: Array
    above: Array
    weight_below: Array
    weight_above: Array


def roi_align(given: EvaluatedCall) -> tuple[Array]:
    """RoiAlign: X, of shape (batch, channels, height, width), pooled over bins of each region of interest.

    Before opset 16 regions are not moved by half an element; onnx's evaluator moves them in all sets.

    Mode max takes the largest of the four weighted elements around each location, and not of interpolated values as
    the page's words suggest: onnx's own node case, its evaluator and ONNX Runtime all do so.

    Locations are computed in the type of X, unless it is smaller than float32, because results jump where a location
    leaves the image or the number of samples changes: 70 times a float32 scale of 0.1 is 7, but more in float64.
    """
    x, regions, images = given.operand(0), given.operand(1), given.operand(2)
    kind = np.dtype(np.float64 if x.dtype == np.float64 else np.float32)
    default = "half_pixel" if given.opset >= 16 else "output_half_pixel"
    moved = given.text("coordinate_transformation_mode", default) == "half_pixel"
    edges = regions.astype(kind) * kind.type(given.real("spatial_scale", 1.0)) - kind.type(0.5 * moved)
    # The page is silent on regions of less than an element. Without the move they are made as large as one, which is
    # the earlier behaviour that the mode keeps, in onnx's evaluator, ONNX Runtime and torchvision.
    extents = edges[:, 2:] - edges[:, :2] if moved else np.maximum(edges[:, 2:] - edges[:, :2], kind.type(1))
    height, width = given.integer("output_height", 1), given.integer("output_width", 1)
    ratio, mode = given.integer("sampling_ratio", 0), given.text("mode", "avg").lower()
    y = np.zeros((len(regions), x.shape[1], height, width))
    with np.errstate(over="ignore", invalid="ignore"):
        for region, image in enumerate(images.reshape(-1)):
            rows = _samples(edges[region, 1], extents[region, 1], height, ratio, x.shape[2])
            columns = _samples(edges[region, 0], extents[region, 0], width, ratio, x.shape[3])
            y[region] = _pooled(wide(x[image]), rows, columns, mode)
        return (y.astype(x.dtype),)


def _samples(start: Any, extent: Any, bins: int, ratio: int, size: int) -> _Samples:  # noqa: ANN401 - floats of numpy
    """Return the locations of a region of `extent` from `start`, along an axis of `size` elements."""
    of_a_bin = extent / extent.dtype.type(bins)
    # An adaptive number is ceil(extent / bins): none for a region that ends before it starts.
    count = ratio or max(0, int(np.ceil(of_a_bin)))
    if count * bins > _MOST_SAMPLES:
        raise ValueError(f"{count} samples for each of {bins} bins")
    halves = np.arange(count).astype(extent.dtype) + extent.dtype.type(0.5)
    within = halves * of_a_bin / extent.dtype.type(max(count, 1))
    return _between(start + np.arange(bins).astype(extent.dtype)[:, None] * of_a_bin + within, size)


def _between(at: Array, size: int) -> _Samples:
    """Return what locations `at` take from an axis of `size` elements."""
    counts = (at >= -1.0) & (at <= size)
    near = np.clip(np.where(counts, at, 0), 0, size - 1)
    below = np.floor(near).astype(np.int64)
    part = near - below
    return _Samples(below, np.minimum(below + 1, size - 1), (1 - part) * counts, part * counts)


def _pooled(image: Array, rows: _Samples, columns: _Samples, mode: str) -> Array:
    """Return `image`, of shape (channels, height, width), pooled to (channels, bins of rows, bins of columns)."""
    corners = []
    for row, by_row in ((rows.below, rows.weight_below), (rows.above, rows.weight_above)):
        for column, by_column in ((columns.below, columns.weight_below), (columns.above, columns.weight_above)):
            weights = by_row[:, :, None, None] * by_column
            corners.append(image[:, row[:, :, None, None], column] * weights)
    if not corners[0].size:
        return np.zeros((len(image), len(rows.below), len(columns.below)))  # no location: the sum of nothing
    stacked = np.stack(corners)
    pooled: Array = stacked.max(axis=(0, 3, 5)) if mode == "max" else stacked.sum(axis=0).mean(axis=(2, 4))
    return pooled
