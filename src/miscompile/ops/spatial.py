"""Geometry of sliding windows, shared by convolution, pooling and their quantised forms.

Sources: the ONNX operator pages of Conv, MaxPool, AveragePool and LpPool (output sizes, auto_pad, ceil_mode).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from miscompile.base.errors import RejectedDraft
from miscompile.graph.attributes import PlainValue
from miscompile.ops.shapes import draw_count, draw_size, fitted
from miscompile.ops.spec import Call, Operand, Shape, Site

_KERNEL = 5
"""Largest kernel size."""


@dataclass(frozen=True, slots=True)
class Window:
    """A sliding window over `len(kernel)` axes. `pads` lists all begins, then all ends, as ONNX does."""

    kernel: Shape
    strides: Shape
    dilations: Shape
    pads: Shape
    auto_pad: str = "NOTSET"
    ceil: bool = False

    @property
    def rank(self) -> int:
        """Number of spatial axes."""
        return len(self.kernel)

    @property
    def elements(self) -> int:
        """Number of elements under the window."""
        return math.prod(self.kernel)

    def extent(self, axis: int) -> int:
        """Distance from the first to the last element of the window on `axis`, both counted."""
        return (self.kernel[axis] - 1) * self.dilations[axis] + 1

    def padding(self, axis: int, size: int) -> tuple[int, int]:
        """Padding before and after an axis of `size` elements, with `auto_pad` resolved."""
        if self.auto_pad == "VALID":
            return 0, 0
        if self.auto_pad == "NOTSET":
            return self.pads[axis], self.pads[axis + self.rank]
        total = max(0, self._same(axis, size))
        small, large = total // 2, total - total // 2
        return (small, large) if self.auto_pad == "SAME_UPPER" else (large, small)

    def _same(self, axis: int, size: int) -> int:
        """Total padding of SAME on an axis; negative when the last stride passes the end of the axis."""
        steps = -(-size // self.strides[axis])
        return (steps - 1) * self.strides[axis] + self.extent(axis) - size

    def steps(self, axis: int, size: int) -> int:
        """Output size on `axis`; less than one when the window does not fit."""
        begin, end = self.padding(axis, size)
        room = size + begin + end - self.extent(axis)
        stride = self.strides[axis]
        return (-(-room // stride) if self.ceil else room // stride) + 1

    def overhang(self, axis: int, size: int) -> int:
        """Elements by which the last window reaches beyond the padded axis, because `ceil` rounding added it."""
        reach = (self.steps(axis, size) - 1) * self.strides[axis] + self.extent(axis)
        return max(0, reach - size - sum(self.padding(axis, size)))

    def output(self, spatial: Shape) -> Shape:
        """Output sizes."""
        return tuple(self.steps(axis, size) for axis, size in enumerate(spatial))

    def fits(self, spatial: Shape) -> bool:
        """Tell whether every axis has at least one output element, and no unspecified behaviour occurs.

        Versions of the operators differ on a window that `ceil` rounding starts in the end padding; SAME with strides
        larger than the window would need negative padding. Both are excluded.
        """
        for axis, size in enumerate(spatial):
            begin, end = self.padding(axis, size)
            if size + begin + end < self.extent(axis):
                return False
            if self.auto_pad.startswith("SAME") and self._same(axis, size) < 0:
                return False
            if self.ceil and (self.steps(axis, size) - 1) * self.strides[axis] >= size + begin:
                return False
        return True

    def covers(self, spatial: Shape) -> bool:
        """Tell whether every window holds at least one element of the input."""
        return self.fits(spatial) and all(self._covers_axis(axis, size) for axis, size in enumerate(spatial))

    def _covers_axis(self, axis: int, size: int) -> bool:
        begin, _ = self.padding(axis, size)
        for step in range(self.steps(axis, size)):
            start = step * self.strides[axis] - begin
            places = range(start, start + self.extent(axis), self.dilations[axis])
            if not any(0 <= place < size for place in places):
                return False
        return True


def images(site: Site, dtype: str | None = None, *, ranks: tuple[int, int] = (3, 5), most: int = 6) -> Operand:
    """Return an operand of shape (batch, channels, spatial...) with no empty axis but perhaps the batch."""

    def draw() -> Shape:
        rank = site.rng.choice(tuple(r for r in (3, 4, 4, 4, 5) if ranks[0] <= r <= ranks[1]) or ranks)
        batch = 0 if site.rng.random() < site.limits.zero_size else site.rng.choice((1, 1, 2, 3))
        channels = draw_count(site.rng, site.limits, most)
        sizes = [batch, channels, *(max(1, draw_size(site.rng, site.limits)) for _ in range(rank - 2))]
        return fitted(site.rng, sizes, site.limits)

    return site.operand(dtype, ranks=ranks, fits=lambda shape: min(shape[1:], default=0) >= 1, draw=draw)


def draw_window(
    site: Site, spatial: Shape, *, dilated: bool = True, ceil: bool = False, pooling: bool = False
) -> Window:
    """Draw a window that fits over `spatial`.

    `ceil` allows ceil_mode, `dilated` dilations. With `pooling`, pads are smaller than the kernel and every window
    holds an element of the input. Raises RejectedDraft when ten drawn windows fail.
    """
    for _ in range(10):
        window = _draw(site, spatial, dilated=dilated, ceil=ceil, pooling=pooling)
        if window.covers(spatial) if pooling else window.fits(spatial):
            return window
    raise RejectedDraft(f"no drawn window fits over {spatial}")


def _draw(site: Site, spatial: Shape, *, dilated: bool, ceil: bool, pooling: bool) -> Window:
    rng, rank = site.rng, len(spatial)
    auto: str = rng.choice(("SAME_UPPER", "SAME_LOWER", "VALID")) if rng.random() < 0.3 else "NOTSET"
    kernel = tuple(rng.randint(1, min(_KERNEL, size + 1)) for size in spatial)
    strides = tuple(rng.choice((1, 1, 2, 3)) for _ in spatial) if rng.random() < 0.6 else (1,) * rank
    # Drawn rarely, because few compilers support dilations together with SAME padding.
    chance = (0.3 if auto in ("NOTSET", "VALID") else 0.05 if pooling else 0.35) if dilated else 0.0
    dilations = tuple(rng.choice((1, 2, 3)) for _ in spatial) if rng.random() < chance else (1,) * rank
    pads = (0,) * (2 * rank)
    if auto == "NOTSET" and rng.random() < 0.6:
        pads = tuple(rng.randint(0, k - 1 if pooling else min(k, 3)) for k in kernel * 2)
    rounding = ceil and auto == "NOTSET" and rng.random() < 0.4
    return Window(kernel, strides, dilations, pads, auto, rounding)


def window_attributes(site: Site, window: Window, *, kernel: bool = True) -> dict[str, PlainValue | None]:
    """Return the attributes of `window`; defaults are sometimes left out, `kernel_shape` when not `kernel`."""
    rng, ones = site.rng, (1,) * window.rank
    found: dict[str, PlainValue | None] = {"kernel_shape": window.kernel if kernel else None}
    for name, sizes in (("strides", window.strides), ("dilations", window.dilations)):
        found[name] = sizes if sizes != ones or rng.random() < 0.2 else None
    if window.auto_pad != "NOTSET":
        found["auto_pad"] = window.auto_pad
    else:
        found["pads"] = window.pads if any(window.pads) or rng.random() < 0.2 else None
        found["auto_pad"] = "NOTSET" if rng.random() < 0.1 else None
    found["ceil_mode"] = 1 if window.ceil else None
    return found


def without_default_dilations(found: Mapping[str, PlainValue | None]) -> dict[str, PlainValue | None]:
    """Return the attributes without `dilations`, for operator versions that do not have them."""
    return {name: value for name, value in found.items() if name != "dilations"}


def window_of(call: Call, kernel: Shape | None = None) -> Window:
    """Return the window of `call`; `kernel` is the default of its kernel_shape."""
    sizes = call.integers("kernel_shape", kernel or ())
    ones = (1,) * len(sizes)
    return Window(
        sizes,
        call.integers("strides", ones),
        call.integers("dilations", ones),
        call.integers("pads", (0,) * (2 * len(sizes))),
        call.text("auto_pad", "NOTSET"),
        bool(call.integer("ceil_mode")),
    )


def divisors(number: int) -> tuple[int, ...]:
    """Return the divisors of a positive number, ascending."""
    return tuple(candidate for candidate in range(1, number + 1) if number % candidate == 0)


def draw_group(site: Site, channels: int) -> int:
    """Draw a number of groups that divides `channels`: mostly one, often one for each channel (depthwise)."""
    chance = site.rng.random()
    if chance < 0.55:
        return 1
    return channels if chance < 0.8 else site.rng.choice(divisors(channels))


def draw_filters(site: Site, x: Shape, kernel: Shape, group: int) -> Shape:
    """Draw the shape of a Conv's filters, (features, channels / group, kernel...)."""
    return (group * draw_count(site.rng, site.limits, max(1, 6 // group)), x[1] // group, *kernel)


def conv_attributes(site: Site, window: Window, group: int) -> dict[str, PlainValue | None]:
    """Return the attributes of the Conv family; `kernel_shape` may be left out, because it follows from the filters."""
    found = window_attributes(site, window, kernel=site.rng.random() < 0.6)
    return {**found, "group": group if group > 1 or site.rng.random() < 0.2 else None}


def check_size(site: Site, shape: Shape) -> None:
    """Raise RejectedDraft when an output of `shape` has far more elements than the limits allow."""
    if math.prod(shape) > 2 * site.limits.max_elements:
        raise RejectedDraft(f"an output of shape {shape} is too large")
