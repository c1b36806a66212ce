"""Sampling of images: Resize, GridSample and RoiAlign.

Sources: the operator pages of the ONNX documentation. In nearest mode, coordinates halfway between two elements are
excluded unless every way to compute them is exact.
"""

import math

import numpy as np

from miscompile.base.dtypes import FLOATS, NUMBERS, is_float
from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.attributes import PlainValue, attributes
from miscompile.graph.model import Node, TensorType
from miscompile.ops.facts import Bounds, Exactness
from miscompile.ops.page_rules import shape_of
from miscompile.ops.rounding import rounded
from miscompile.ops.spatial import check_size, images
from miscompile.ops.spec import Call, Operand, OpSpec, RunOperands, Shape, Site

_FAMILY = "vision"
_ANTIALIAS_SINCE = 18
"""The opset that brings the attribute `antialias`."""
_OVERSHOOT = 1.5
"""Bound of the sum of the magnitudes of the four cubic weights, for coefficients from -0.75 to -0.5."""


def _sample_resize(site: Site) -> Call:
    """Draw a Resize, by scales or by sizes.

    In nearest mode the scales are powers of two with sizes that they divide, so coordinates are exact and ties have
    one answer. Linear and cubic modes interpolate floats only, at any scale; both round.
    """
    rng = site.rng
    mode = rng.choice(("linear", "linear", "cubic", "nearest")) if is_float(site.dtype) else "nearest"
    x = images(site, ranks=(4, 4) if mode == "cubic" else (3, 5))
    if 0 in x.shape:
        raise RejectedDraft("nothing to resize")
    sizes = tuple(_resized(site, size, mode) for size in x.shape[2:])
    check_size(site, (*x.shape[:2], *sizes))
    found: dict[str, PlainValue | None] = {"mode": mode if mode != "nearest" or rng.random() < 0.5 else None}
    found["coordinate_transformation_mode"] = _transformation(site, mode, sizes)
    if mode == "nearest":
        found["nearest_mode"] = rng.choice((None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"))
    if mode == "cubic":
        found["cubic_coeff_a"] = rng.choice((None, -0.5))
        found["exclude_outside"] = rng.choice((None, 0, 1))
    if mode != "nearest" and site.opset >= _ANTIALIAS_SINCE:
        found["antialias"] = rng.choice((None, None, None, 0, 1))
    axes = tuple(range(2, x.rank)) if site.opset >= 18 and rng.random() < 0.3 else None
    found["axes"] = axes
    roi = site.known(np.zeros(0, np.float32)) if rng.random() < 0.3 else None
    whole = sizes if axes else (*x.shape[:2], *sizes)
    old = x.shape[2:] if axes else x.shape
    scales = [new / size for new, size in zip(whole, old, strict=True)]
    if rng.random() < 0.5 and all(
        math.floor(size * scale) == size * scale for size, scale in zip(old, scales, strict=True)
    ):
        scale = site.known(np.array(scales, np.float32))
        if all(
            (size * scale).is_integer() and math.log2(scale).is_integer()
            for size, scale in zip(old, scales, strict=True)
        ):
            return Call("Resize", (x, roi, scale), attributes(found))
    return Call("Resize", (x, roi, None, site.known(np.array(whole, np.int64))), attributes(found))


def _resized(site: Site, size: int, mode: str) -> int:
    """Draw the new size of an axis."""
    if mode != "nearest" and site.rng.random() < 0.5:
        return site.rng.randint(1, 2 * size + 1)
    return site.rng.choice((size, 2 * size, 2 * size, 4 * size, size // 2 if size % 2 == 0 else size))


def _transformation(site: Site, mode: str, sizes: Shape) -> str | None:
    """Draw a coordinate transformation; None stands for the default.

    `align_corners` divides by the new size minus one, which is not exact, so it is left out of nearest mode.
    Implementations disagree on it and on `pytorch_half_pixel` for new sizes of one.
    """
    names: list[str | None] = [None, "half_pixel", "asymmetric"]
    if min(sizes) > 1:
        names += ["pytorch_half_pixel"] if mode == "nearest" else ["pytorch_half_pixel", "align_corners"]
    if site.opset >= 19:
        names.append("half_pixel_symmetric")
    return site.rng.choice(names)


def _bounds_resize(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    """Bounds of elements picked, of convex combinations, or of cubic ones, which overshoot on each axis.

    Weights of cubic interpolation at an edge are made to sum to one again when the outside is excluded.
    """
    x, mode = call.facts(), call.text("mode", "nearest")
    if mode == "nearest":
        return (Bounds(x.lo, x.hi, x.integral),)
    if mode == "linear":
        return (rounded(types[0].dtype, x.lo, x.hi, terms=32),)
    normalised = call.integer("exclude_outside") or call.integer("antialias")
    largest = x.magnitude * (2.0 if normalised else _OVERSHOOT) ** (call.operand(0).rank - 2)
    return (rounded(types[0].dtype, -largest, largest, terms=32),)


def _defined_resize(call: Call) -> bool:
    """Guard: target sizes or scales are known, and nothing is empty."""
    target = call.operand(3 if call.has(3) else 2)
    return target.value is not None and bool((target.value > 0).all()) and 0 not in call.operand(0).shape


def _sample_grid(site: Site) -> Call:
    rng = site.rng
    newer = site.opset >= 20
    x = images(site, ranks=(4, 5) if newer and rng.random() < 0.3 else (4, 4))
    if 0 in x.shape:
        raise RejectedDraft("nothing to sample")
    spatial = x.rank - 2
    names = {
        "linear": "linear" if newer else "bilinear",
        "cubic": "cubic" if newer else "bicubic",
        "nearest": "nearest",
    }
    mode = rng.choice(("linear", "linear", "nearest", *(("cubic",) if spatial == 2 else ())))
    aligned = rng.choice((None, 0, 1))
    # Reflection between aligned corners that coincide divides by zero.
    flat = bool(aligned) and min(x.shape[2:]) == 1
    padding = rng.choice((None, "zeros", "border", *(() if flat else ("reflection",))))
    shape = (x.shape[0], *(rng.randint(1, 4) for _ in range(spatial)), spatial)
    dtype = rng.choice(("float32", "float64")) if rng.random() < 0.1 else site.dtype
    if mode == "nearest":
        grid = _clear_grid(site, x.shape[2:], shape, aligned=bool(aligned))
    else:
        # Unspecified: cubic interpolation outside the image clamps either the point or each of its neighbours.
        inner = mode == "cubic" and padding in ("border", "reflection")
        grid = site.operand(dtype, shape=shape, within=(-0.9, 0.9) if inner else (-1.5, 1.5))
    found: dict[str, PlainValue | None] = {
        "mode": names[mode] if mode != "linear" or rng.random() < 0.6 else None,
        "padding_mode": padding,
        "align_corners": aligned,
    }
    return Call("GridSample", (x, grid), attributes(found))


def _clear_grid(site: Site, spatial: Shape, shape: Shape, *, aligned: bool) -> Operand:
    """Return a known grid whose points are far from the middle between two pixels.

    The last axis of a grid lists coordinates from the innermost spatial axis outwards.
    """
    columns = []
    for size in reversed(spatial):
        count = math.prod(shape[:-1])
        places = [site.rng.randint(-1, size) + site.rng.uniform(-0.3, 0.3) for _ in range(count)]
        pixels = np.array(places)
        if aligned:
            columns.append(2 * pixels / (size - 1) - 1 if size > 1 else np.full(count, site.rng.uniform(-1, 1)))
        else:
            columns.append((2 * pixels + 1) / size - 1)
    return site.known(tensor(np.stack(columns, axis=-1).reshape(shape), "float32").array)


def _bounds_grid(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    x, mode, padding = call.facts(), call.text("mode", "linear"), call.text("padding_mode", "zeros")
    lo, hi = (min(x.lo, 0.0), max(x.hi, 0.0)) if padding == "zeros" else (x.lo, x.hi)
    if mode == "nearest":
        return (Bounds(lo, hi, x.integral),)
    if mode in ("linear", "bilinear"):
        return (rounded(types[0].dtype, lo, hi, terms=64),)
    largest = x.magnitude * _OVERSHOOT**2
    return (rounded(types[0].dtype, -largest, largest, terms=64),)


def _defined_grid(call: Call) -> bool:
    """Guard: the grid is not far outside, in nearest mode known to be clear of ties, and reflection has two corners."""
    x, grid = call.operand(0), call.operand(1)
    aligned = call.integer("align_corners")
    if 0 in x.shape or (aligned and call.text("padding_mode") == "reflection" and min(x.shape[2:]) == 1):
        return False
    if call.text("mode", "linear") != "nearest":
        return grid.facts.inside(-2, 2)
    if grid.value is None:
        return False
    sizes = np.array(x.shape[:1:-1], np.float64)
    points = Tensor(grid.dtype, grid.value).numbers().astype(np.float64)
    pixels = (points + 1) / 2 * (sizes - 1) if aligned else ((points + 1) * sizes - 1) / 2
    return bool((np.abs(pixels - np.floor(pixels) - 0.5) > 0.05).all())


def _sample_roi(site: Site) -> Call:
    """Draw a RoiAlign of boxes inside the image. Mode max is left out because implementations disagree on it."""
    rng = site.rng
    x = images(site, ranks=(4, 4))
    if 0 in x.shape:
        raise RejectedDraft("no image to cut from")
    count, scale = rng.randint(1, 4), rng.choice((1.0, 1.0, 0.5, 2.0))
    boxes = [_box(site, x.shape[3] / scale, x.shape[2] / scale) for _ in range(count)]
    rois = site.known(tensor(np.array(boxes, np.float64), site.dtype).array, site.dtype)
    found: dict[str, PlainValue | None] = {
        "output_height": rng.choice((None, 1, 2, 3)),
        "output_width": rng.choice((None, 1, 2, 3)),
        "sampling_ratio": rng.choice((1, 2, 2, 3)),
        "spatial_scale": scale if scale != 1 or rng.random() < 0.5 else None,
        "mode": rng.choice((None, "avg")),
    }
    if site.opset >= 16:
        found["coordinate_transformation_mode"] = rng.choice((None, "half_pixel", "output_half_pixel"))
    indices = site.known(np.array([rng.randrange(x.shape[0]) for _ in range(count)], np.int64))
    return Call("RoiAlign", (x, rois, indices), attributes(found))


def _box(site: Site, width: float, height: float) -> tuple[float, float, float, float]:
    """Draw a box (x1, y1, x2, y2) inside a width by height image."""
    left, top = site.rng.uniform(0, 0.5) * width, site.rng.uniform(0, 0.5) * height
    return left, top, site.rng.uniform(0.6, 1.0) * width, site.rng.uniform(0.6, 1.0) * height


def _bounds_roi(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    """Bounds of means of convex combinations; points outside the image count as zero."""
    x = call.facts()
    return (rounded(types[0].dtype, min(x.lo, 0.0), max(x.hi, 0.0), terms=64),)


def _of_an_image(_: Node, value: RunOperands) -> bool:
    """Every box belongs to an image of the batch."""
    images, indices = value(0), value(2)
    if images is None or indices is None or not images.shape:
        return True
    return bool(((indices.array >= 0) & (indices.array < images.shape[0])).all())


def _defined_roi(call: Call) -> bool:
    """Guard: boxes and their images are known, images exist, boxes are not inverted, the sampling is fixed."""
    rois, indices, images_ = call.operand(1), call.operand(2).value, call.operand(0).shape[0]
    if rois.value is None or indices is None or call.integer("sampling_ratio") < 1:
        return False
    boxes = Tensor(rois.dtype, rois.value).numbers().astype(np.float64)
    ordered = bool((boxes[:, :2] <= boxes[:, 2:]).all()) and boxes.min(initial=0.0) >= 0
    return ordered and bool(((indices >= 0) & (indices < images_)).all())


def _nearest(call: Call) -> bool:
    return call.text("mode", "nearest") == "nearest"


def _nearest_grid(call: Call) -> bool:
    return call.text("mode", "bilinear") == "nearest"


def _page_resize(call: Call) -> bool:
    """A size or scale for each axis, or for each named one; scales are greater than 0."""
    count = len(call.integers("axes")) if "axes" in call.attributes else call.operand(0).rank
    scales = call.operand(2).value if call.has(2) else None
    if scales is not None and not (scales > 0).all():
        return False
    return all(shape_of(call, place) in (None, (0,), (count,)) for place in (2, 3))


def _page_grid_sample(call: Call) -> bool:
    x, grid = call.operand(0).shape, call.operand(1).shape
    return len(grid) == len(x) and len(x) > 2 and grid[0] == x[0] and grid[-1] == len(x) - 2


def _page_roi_align(call: Call) -> bool:
    boxes = call.operand(1).shape
    return len(call.operand(0).shape) == 4 and len(boxes) == 2 and boxes[1] == 4 and call.operand(2).shape == boxes[:1]


SPECS = (
    OpSpec(
        "Resize", (*NUMBERS, "bool"), _sample_resize, _bounds_resize, Exactness.MOVES, _FAMILY, _defined_resize,
        exact_when=_nearest, well_formed=_page_resize, structural={"shape": (1, 2, 3)}, fusion="injective",
        traits=("float32-numbers", "image-positions"),
    ),
    OpSpec(
        "GridSample", FLOATS, _sample_grid, _bounds_grid, Exactness.MOVES, _FAMILY, _defined_grid, since=16,
        exact_when=_nearest_grid, well_formed=_page_grid_sample, traits=("image-positions",),
    ),
    OpSpec(
        "RoiAlign", FLOATS, _sample_roi, _bounds_roi, Exactness.ROUNDS, _FAMILY, _defined_roi, defined_on=_of_an_image,
        well_formed=_page_roi_align, traits=("image-positions",),
    ),
)  # fmt: skip
