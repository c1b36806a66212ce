"""Sampling of images. Sources: the operator pages of the ONNX documentation."""

import jax
import jax.numpy as jnp
import numpy as np

from miscompile.targets.lowering.table import lowers


def source_places(size: int, new: int, scale: float, transformation: str, roi: tuple[float, float]) -> np.ndarray:
    """Return for each of `new` elements its coordinate among the `size` old ones."""
    places, whole = np.arange(new), size * scale
    match transformation:
        case "asymmetric":
            return places / scale
        case "align_corners":
            return places * (size - 1) / (whole - 1) if whole != 1 else np.zeros(new)
        case "tf_crop_and_resize":
            inner = places * (roi[1] - roi[0]) / (whole - 1) if whole != 1 else np.full(new, (roi[1] - roi[0]) / 2)
            return (roi[0] + inner) * (size - 1)
        case "pytorch_half_pixel" if whole == 1:
            return np.full(new, -0.5)
        case "half_pixel_symmetric":
            return size / 2 * (1 - new / whole) + (places + 0.5) / scale - 0.5
        case _:
            return (places + 0.5) / scale - 0.5


def cubic(distance: np.ndarray, a: float) -> np.ndarray:
    """Return the weight of an element at a distance in cubic convolution."""
    x = np.abs(distance)
    near = (a + 2) * x**3 - (a + 3) * x**2 + 1
    far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def taps(
    places: np.ndarray, size: int, mode: str, nearest: str, a: float, exclude: int, shrink: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the old elements of each new one, and their weights; `shrink` < 1 widens the filter."""
    if mode == "nearest":
        match nearest:
            case "floor":
                index = np.floor(places)[:, None]
            case "ceil":
                index = np.ceil(places)[:, None]
            case "round_prefer_ceil":
                index = np.floor(places + 0.5)[:, None]
            case _:
                index = np.ceil(places - 0.5)[:, None]
        weights = np.ones(index.shape)
    else:
        reach = int(np.ceil((2 if mode == "cubic" else 1) / shrink))
        index = np.floor(places)[:, None] + np.arange(1 - reach, reach + 1)
        distance = (index - places[:, None]) * shrink
        weights = cubic(distance, a) if mode == "cubic" else np.maximum(1 - np.abs(distance), 0)
        if exclude:
            weights = np.where((index >= 0) & (index < size), weights, 0)
        if exclude or shrink < 1:
            weights = weights / weights.sum(1, keepdims=True)
    return np.clip(index, 0, size - 1).astype(int), weights


def target_sizes(
    old: list[int], scales: tuple[float, ...] | None, sizes: tuple[int, ...] | None, policy: str
) -> tuple[list[int], list[float]]:
    """Return the new sizes and their scales; `policy` may require one scale for all axes."""
    if not sizes:
        return [int(np.floor(size * scale)) for size, scale in zip(old, scales or (), strict=True)], list(scales or ())
    ratios = [new / size for new, size in zip(sizes, old, strict=True)]
    if policy == "stretch":
        return list(sizes), ratios
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    return [int(scale * size + 0.5) for size in old], [scale] * len(old)


@lowers("Resize", static=(1, 2, 3))
def resize(
    x: jax.Array,
    roi: tuple[float, ...] | None = None,
    scales: tuple[float, ...] | None = None,
    sizes: tuple[int, ...] | None = None,
    *,
    antialias: int = 0,
    axes: tuple[int, ...] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> jax.Array:
    """Interpolation, one axis after the other."""
    chosen = [axis % x.ndim for axis in (range(x.ndim) if axes is None else axes)]
    news, factors = target_sizes([x.shape[axis] for axis in chosen], scales, sizes, keep_aspect_ratio_policy)
    cropped = coordinate_transformation_mode == "tf_crop_and_resize"
    y = x.astype(jnp.promote_types(x.dtype, jnp.float32)) if mode != "nearest" else x
    for number, (axis, new, scale) in enumerate(zip(chosen, news, factors, strict=True)):
        size = x.shape[axis]
        if new == size and scale == 1 and not cropped:
            continue
        part = (roi[number], roi[number + len(chosen)]) if cropped and roi else (0.0, 1.0)
        places = source_places(size, new, scale, coordinate_transformation_mode, part)
        shrink = min(scale, 1.0) if antialias else 1.0
        index, weights = taps(places, size, mode, nearest_mode, cubic_coeff_a, exclude_outside, shrink)
        if mode == "nearest":
            y = jnp.take(y, index[:, 0], axis)
        else:
            shape = [*index.shape, *[1] * (y.ndim - axis - 1)]
            y = jnp.sum(jnp.take(y, index, axis) * jnp.asarray(weights.reshape(shape), y.dtype), axis + 1)
        if cropped:
            outside = ((places < 0) | (places > size - 1)).reshape(-1, *[1] * (y.ndim - axis - 1))
            y = jnp.where(outside, jnp.asarray(extrapolation_value, y.dtype), y)
    return y.astype(x.dtype)


@lowers("AffineGrid", static=(1,))
def affine_grid(theta: jax.Array, size: tuple[int, ...], *, align_corners: int = 0) -> jax.Array:
    """Coordinates in [-1, 1] of the centres or corners of an image's elements, mapped by one matrix per image."""
    ends = [1.0 if align_corners else 1 - 1 / count for count in size[2:]]
    places = [np.linspace(-end, end, count) for end, count in zip(ends, size[2:], strict=True)]
    grid = np.stack([*reversed(np.meshgrid(*places, indexing="ij")), np.ones(size[2:])], -1)
    return jnp.einsum("nij,...j->n...i", theta, jnp.asarray(grid, theta.dtype))


def reflect(place: jax.Array, low: float, high: float) -> jax.Array:
    """Return indices reflected at both ends until they are between them."""
    span = high - low
    turns, rest = jnp.floor_divide(place - low, span), jnp.remainder(place - low, span)
    return jnp.where(turns % 2 == 0, low + rest, high - rest)


@lowers("GridSample")
def grid_sample(
    x: jax.Array, grid: jax.Array, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros"
) -> jax.Array:
    """Elements of an image at the grid's coordinates, which are in [-1, 1] on each axis."""
    rank, kind = x.ndim - 2, mode.removeprefix("bi")
    y = jnp.zeros((), x.dtype)
    choices = []
    for axis, size in enumerate(x.shape[2:]):
        place = grid[..., rank - 1 - axis]
        place = (place + 1) / 2 * (size - 1) if align_corners else ((place + 1) * size - 1) / 2
        low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
        place = jnp.round(place) if kind == "nearest" else place
        if padding_mode != "zeros":
            bent = jnp.clip(place, 0, size - 1) if padding_mode == "border" else reflect(place, low, high)
            place = jnp.where((place < low) | (place > high), bent, place)
        base = jnp.floor(place)
        found = []
        for offset in {"nearest": [0], "linear": [0, 1], "cubic": [-1, 0, 1, 2]}[kind]:
            index, distance = base + offset, jnp.abs(base + offset - place)
            weight = grid_weight(kind, distance)
            inside = (index >= 0) & (index < size)
            if padding_mode == "zeros":
                weight = jnp.where(inside, weight, 0)
            elif padding_mode == "reflection":
                index = jnp.where(inside, index, jnp.trunc(reflect(index, low, high)))
            found.append((jnp.clip(index, 0, size - 1).astype(jnp.int32), weight))
        choices.append(found)
    for numbers in np.ndindex(*[len(found) for found in choices]):
        corner = [found[number] for found, number in zip(choices, numbers, strict=True)]
        index, weight = [place for place, _ in corner], jnp.ones((), grid.dtype)
        for _, factor in corner:
            weight = weight * factor
        values = jax.vmap(lambda image, *at: image[(slice(None), *at)])(x, *index)
        y = y + values * weight[:, None].astype(x.dtype)
    return y


def grid_weight(kind: str, distance: jax.Array) -> jax.Array:
    """Return the weight of an element at a distance."""
    if kind == "cubic":
        near = (1.25 * distance - 2.25) * distance * distance + 1
        far = ((-0.75 * distance + 3.75) * distance - 6) * distance + 3
        return jnp.where(distance <= 1, near, far)
    return jnp.ones_like(distance) if kind == "nearest" else 1 - distance


@lowers("RoiAlign")
def roi_align(
    x: jax.Array,
    rois: jax.Array,
    batch: jax.Array,
    *,
    coordinate_transformation_mode: str | None = None,
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
    opset: int,
) -> jax.Array:
    """Means or maxima of samples from boxes of images."""
    if sampling_ratio <= 0:
        raise NotImplementedError("RoiAlign with a number of samples that depends on the boxes")
    half = (coordinate_transformation_mode or ("half_pixel" if opset >= 16 else "output_half_pixel")) == "half_pixel"
    boxes = rois * spatial_scale - (0.5 if half else 0)
    around = []
    for axis, count in ((1, output_height), (0, output_width)):
        start, length = boxes[:, axis, None], (boxes[:, axis + 2] - boxes[:, axis])[:, None]
        length = length if half else jnp.maximum(length, 1)
        samples = count * sampling_ratio
        around.append(edges(start + (jnp.arange(samples) + 0.5) * length / samples, x.shape[3 - axis]))

    def sample(image: jax.Array, rows: tuple[jax.Array, ...], columns: tuple[jax.Array, ...]) -> jax.Array:
        parts = [
            image[:, rows[a][:, None], columns[b]] * (rows[a + 2][:, None] * columns[b + 2])
            for a, b in np.ndindex(2, 2)
        ]
        shape = image.shape[0], output_height, sampling_ratio, output_width, sampling_ratio
        if mode == "avg":
            return jnp.mean(sum(parts).reshape(shape), (2, 4))
        return jnp.max(jnp.stack(parts).reshape(4, *shape), (0, 3, 5))

    return jax.vmap(sample)(x[batch], *around)


def edges(place: jax.Array, size: int) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Return the indices of the two elements next to a coordinate, and their weights: zero outside the image."""
    inside = (place >= -1) & (place <= size)
    place = jnp.clip(place, 0, size - 1)
    low = jnp.floor(place)
    high = jnp.minimum(low + 1, size - 1)
    share = jnp.where(inside, 1, 0).astype(place.dtype)
    return low.astype(jnp.int32), high.astype(jnp.int32), share * (1 - place + low), share * (place - low)
