"""Sampling of images."""

# ruff: noqa: ANN401 - tensors, and nested sequences of numbers

from typing import Any

import torch

from miscompile.targets.lowering.table import lowers
from miscompile.targets.lowering.torch.names import F


def coordinates(old: int, new: int, scale: float, mode: str) -> Any:
    """Return the coordinates of a resized axis' elements on the old axis, by the transformation `mode`."""
    if mode == "asymmetric":
        return [i / scale for i in range(new)]
    if mode == "align_corners":
        return [i * (old - 1) / (old * scale - 1) if i else 0.0 for i in range(new)]
    if mode == "pytorch_half_pixel" and new == 1:
        return [0.0]
    if mode == "half_pixel_symmetric":
        offset = old / 2 * (1 - new / (scale * old))
        return [offset + (i + 0.5) / scale - 0.5 for i in range(new)]
    if mode not in ("half_pixel", "pytorch_half_pixel"):
        raise NotImplementedError(f"Resize by {mode} has no lowering")
    return [(i + 0.5) / scale - 0.5 for i in range(new)]


def nearest_places(where: Any, old: int, rule: str) -> Any:
    """Return the nearest old element for each coordinate."""
    found = []
    for x in where:
        low = int(x // 1)
        part = x - low
        up = {"floor": False, "ceil": part > 0, "round_prefer_ceil": part >= 0.5, "round_prefer_floor": part > 0.5}[
            rule
        ]
        found.append(min(max(low + up, 0), old - 1))
    return found


def weight_rows(where: Any, old: int, mode: str, a: float, exclude: int) -> Any:
    """Return for each coordinate the linear or cubic weight of every old element; outside, the edge element counts."""
    rows = []
    for x in where:
        low = int(x // 1)
        t = x - low
        if mode == "linear":
            taps = {low: 1 - t, low + 1: t}
        else:
            near = [(a + 2) * d**3 - (a + 3) * d**2 + 1 for d in (t, 1 - t)]
            far = [a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a for d in (1 + t, 2 - t)]
            taps = {low - 1: far[0], low: near[0], low + 1: near[1], low + 2: far[1]}
        if exclude:
            taps = {place: weight for place, weight in taps.items() if 0 <= place < old}
            total = sum(taps.values())
            taps = {place: weight / total for place, weight in taps.items()}
        row = [0.0] * old
        for place, weight in taps.items():
            row[min(max(place, 0), old - 1)] += weight
        rows.append(row)
    return rows


@lowers("Resize", static=(1, 2, 3))
def resize(
    x: Any,
    roi: Any = None,
    scales: Any = None,
    sizes: Any = None,
    *,
    antialias: int = 0,
    axes: Any = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Any:
    """Images resized, with F.interpolate if it implements the requested modes, otherwise axis by axis."""
    if antialias or keep_aspect_ratio_policy != "stretch":
        raise NotImplementedError("Resize with antialiasing, or that keeps the aspect ratio, has no lowering")
    axes = tuple(range(x.dim())) if axes is None else tuple([axis % x.dim() for axis in axes])
    olds = [x.shape[axis] for axis in axes]
    news = list(sizes) if sizes else [int(old * scale) for old, scale in zip(olds, scales, strict=True)]
    if not sizes and all(old * scale == new for old, new, scale in zip(olds, news, scales, strict=True)):
        sizes = news
    rates = scales or [new / old for old, new in zip(olds, news, strict=True)]
    rules = (mode, coordinate_transformation_mode, nearest_mode if mode == "nearest" else "")
    known = interpolation(rules, x.dim(), cubic_coeff_a, exclude_outside) if sizes and x.is_floating_point() else None
    outer = [i for i, axis in enumerate(axes) if axis < 2]
    if known is not None and all(olds[i] == news[i] for i in outer) and len(axes) - len(outer) == x.dim() - 2:
        spatial = dict(zip(axes, news, strict=True))
        size = [spatial[axis] for axis in range(2, x.dim())]
        return F.interpolate(x, size=size, mode=known, align_corners=True if rules[1] == "align_corners" else None)
    for axis, old, new, rate in zip(axes, olds, news, rates, strict=True):
        if rate == 1:
            continue
        where = coordinates(old, new, rate, coordinate_transformation_mode)
        if mode == "nearest":
            x = torch.index_select(x, axis, torch.tensor(nearest_places(where, old, nearest_mode)))
        else:
            rows = torch.tensor(weight_rows(where, old, mode, cubic_coeff_a, exclude_outside), dtype=x.dtype)
            x = torch.matmul(x.movedim(axis, -1), rows.t()).movedim(-1, axis)
    return x


def interpolation(rules: Any, rank: int, a: float, exclude: int) -> Any:
    """Return the mode of F.interpolate that implements these settings, None if there is none."""
    if rules == ("nearest", "asymmetric", "floor"):
        return "nearest"
    if rules == ("nearest", "half_pixel", "round_prefer_ceil"):
        return "nearest-exact"
    if rules[0] == "linear" and rules[1] in ("half_pixel", "align_corners"):
        return {3: "linear", 4: "bilinear", 5: "trilinear"}.get(rank)
    cubic = rules[0] == "cubic" and rules[1] in ("half_pixel", "align_corners")
    return "bicubic" if cubic and rank == 4 and a == -0.75 and not exclude else None


@lowers("AffineGrid", static=(1,))
def affine_grid(theta: Any, size: tuple[int, ...], *, align_corners: int = 0) -> Any:
    """The coordinates of an image's elements in [-1, 1], mapped by one matrix per image."""
    return F.affine_grid(theta, size, align_corners=bool(align_corners))


GRID_MODES = {"linear": "bilinear", "cubic": "bicubic"}


@lowers("GridSample")
def grid_sample(x: Any, grid: Any, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros") -> Any:
    """The elements of images at the coordinates of a grid."""
    common = torch.promote_types(x.dtype, grid.dtype)
    mode = GRID_MODES.get(mode, mode)
    y = F.grid_sample(x.to(common), grid.to(common), mode, padding_mode, align_corners=bool(align_corners))
    return y.to(x.dtype)


def bilinear_taps(places: Any, size: int) -> Any:
    """Return the two neighbours of each coordinate and their weights, which are zero far outside."""
    inside = (places >= -1) & (places <= size)
    places = torch.clamp(places, 0.0, size - 1.0)
    low = torch.clamp(torch.floor(places), 0.0, max(size - 2.0, 0.0))
    part = torch.where(inside, places - low, torch.zeros_like(places))
    rest = torch.where(inside, 1 - (places - low), torch.zeros_like(places))
    low = low.to(torch.int64)
    return (low, rest), (torch.clamp_max(low + 1, size - 1), part)


def sample_places(first: Any, extent: Any, count: int, ratio: int) -> Any:
    """Return the coordinates of `ratio` points in each of `count` bins of every box."""
    points = (torch.arange(count * ratio, dtype=first.dtype) + 0.5) / ratio
    return first.unsqueeze(1) + points * (extent / count).unsqueeze(1)


@lowers("RoiAlign")
def roi_align(
    x: Any,
    rois: Any,
    batch: Any,
    *,
    coordinate_transformation_mode: str = "",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
    opset: int,
) -> Any:
    """The means of points, sampled by bilinear interpolation, in the bins of boxes (x1, y1, x2, y2)."""
    if mode != "avg" or sampling_ratio < 1:
        raise NotImplementedError("RoiAlign has a lowering for means of a fixed number of points only")
    half = (coordinate_transformation_mode or ("half_pixel" if opset >= 16 else "output_half_pixel")) == "half_pixel"
    left, top, right, bottom = (rois * spatial_scale - (0.5 if half else 0.0)).unbind(1)
    wide, tall = right - left, bottom - top
    if not half:
        wide, tall = torch.clamp_min(wide, 1.0), torch.clamp_min(tall, 1.0)
    rows = bilinear_taps(sample_places(top, tall, output_height, sampling_ratio), x.shape[2])
    columns = bilinear_taps(sample_places(left, wide, output_width, sampling_ratio), x.shape[3])
    images, total = x[batch.to(torch.int64)], torch.zeros(())
    box = torch.arange(rois.shape[0]).reshape(-1, 1, 1)
    for row, down in rows:
        for column, across in columns:
            values = images[box, :, row.unsqueeze(2), column.unsqueeze(1)]
            total = total + values * (down.unsqueeze(2) * across.unsqueeze(1)).unsqueeze(-1)
    total = total.reshape(rois.shape[0], output_height, sampling_ratio, output_width, sampling_ratio, x.shape[1])
    return total.mean((2, 4)).permute(0, 3, 1, 2)
