"""Where the windows of pooling lie.

https://onnx.ai/onnx/operators/onnx__AveragePool.html, onnx__MaxPool.html, onnx__LpPool.html
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from miscompile.core.tensor import Array
from miscompile.ops.definitions.evaluated_call import EvaluatedCall


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows along one spatial axis of `size` elements.

    `places` has the shape (windows, kernel): for each window the places of its elements on the axis. Places in the
    padding are negative, or `size` and more. `end` is the first place behind the padded axis.
    """

    size: int
    places: Array
    end: int

    def inside(self) -> Array:
        """Tell for each place whether it holds an element of the input."""
        return (self.places >= 0) & (self.places < self.size)

    def padded(self) -> Array:
        """Tell for each place whether it lies in the padded axis: ceil_mode makes windows that reach behind it."""
        return self.places < self.end

    def taken(self, values: Array, axis: int, fill: float) -> Array:
        """Return the elements of each window, with `fill` for padding: `axis` becomes two, (windows, kernel)."""
        beside = np.full((*values.shape[:axis], 1, *values.shape[axis + 1 :]), fill, dtype=values.dtype)
        places = np.where(self.inside(), self.places, self.size)
        return np.concatenate([values, beside], axis).take(places, axis)


def fitting_windows(given: EvaluatedCall, spatial: Sequence[int]) -> tuple[Windows, ...]:
    """Return the windows along each axis. Raises ValueError where kernel_shape has another rank, or none fits."""
    kernel = given.integers("kernel_shape") or ()
    if len(kernel) != len(spatial):
        raise ValueError(f"kernel_shape {kernel} for {len(spatial)} spatial axes")
    found = windows(given, spatial)
    if any(one.size and not len(one.places) for one in found):
        raise ValueError("no window fits into the padded operand")
    return found


def windows(given: EvaluatedCall, spatial: Sequence[int]) -> tuple[Windows, ...]:
    """Return the windows along each of the axes with the sizes `spatial`."""
    rank = len(spatial)
    kernel, ones = given.integers("kernel_shape") or (), (1,) * rank
    strides, dilations = given.integers("strides") or ones, given.integers("dilations") or ones
    pads, auto_pad = given.integers("pads") or (0,) * (2 * rank), given.text("auto_pad", "NOTSET")
    ceil, found = bool(given.integer("ceil_mode", 0)), []
    for axis, size in enumerate(spatial):
        extent = (kernel[axis] - 1) * dilations[axis] + 1
        begin, end = pads[axis], pads[axis + rank]
        if auto_pad != "NOTSET":
            begin, end = _automatic(auto_pad, size, extent, strides[axis])
        # The page gives no ceil_mode to auto_pad: the sizes of VALID and SAME are the same with it and without.
        count = _count(size, begin, end, extent, strides[axis], ceil=ceil and auto_pad == "NOTSET")
        starts, steps = np.arange(count) * strides[axis] - begin, np.arange(kernel[axis]) * dilations[axis]
        found.append(Windows(size, starts[:, None] + steps, size + end))
    return tuple(found)


def _automatic(auto_pad: str, size: int, extent: int, stride: int) -> tuple[int, int]:
    """Return the padding before and behind an axis, for windows that reach over `extent` places.

    SAME makes ceil(size / stride) windows. Where a stride is larger than the extent, the page's formula may give a
    negative number, which padding may not be: the axis has that number of windows without padding.
    """
    if auto_pad == "VALID":
        return 0, 0
    total = max(0, (-(-size // stride) - 1) * stride + extent - size)
    less, more = total // 2, total - total // 2
    return (more, less) if auto_pad == "SAME_LOWER" else (less, more)


def _count(size: int, begin: int, end: int, extent: int, stride: int, *, ceil: bool) -> int:
    """Return the number of windows along an axis."""
    room = size + begin + end - extent
    if not ceil:
        return max(0, room // stride + 1)
    # A window that would start behind the last element is left out: its start is a multiple of the stride that is
    # at least begin + size. Pages before opset 22 do not say so; ONNX Runtime and PyTorch leave it out in all versions.
    return max(0, min(-(-room // stride) + 1, -(-(begin + size) // stride)))
