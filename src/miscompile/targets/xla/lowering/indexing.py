"""Elements by index. Sources: the operator pages of the ONNX documentation."""

import jax
import jax.numpy as jnp
from jax import lax

from miscompile.targets.lowering.table import lowers

gather = lowers("Gather")(lambda x, indices, *, axis=0: jnp.take(x, indices, axis))


@lowers("GatherElements")
def gather_elements(x: jax.Array, indices: jax.Array, *, axis: int = 0) -> jax.Array:
    """Single elements of an axis; the indices may cover a part of the other axes."""
    axis = axis % x.ndim
    part = [slice(None) if place == axis else slice(size) for place, size in enumerate(indices.shape)]
    return jnp.take_along_axis(x[tuple(part)], indices, axis)


@lowers("GatherND")
def gather_nd(x: jax.Array, indices: jax.Array, *, batch_dims: int = 0) -> jax.Array:
    """Slices of x, each selected by its leading indices."""
    shape = indices.shape[:-1]
    batch = [lax.broadcasted_iota(indices.dtype, shape, axis) for axis in range(batch_dims)]
    return x[(*batch, *jnp.moveaxis(indices, -1, 0))]


def scatter(x: jax.Array, index: tuple[jax.Array, ...], updates: jax.Array, reduction: str) -> jax.Array:
    """Replace elements of x, or combine them with the updates."""
    place = x.at[index]
    match reduction:
        case "none":
            return place.set(updates)
        case "add":
            return place.add(updates)
        case "mul":
            return place.mul(updates)
        case "max":
            return place.max(updates)
        case _:
            return place.min(updates)


@lowers("ScatterElements")
def scatter_elements(
    x: jax.Array, indices: jax.Array, updates: jax.Array, *, axis: int = 0, reduction: str = "none"
) -> jax.Array:
    """x with single elements replaced."""
    index = [lax.broadcasted_iota(indices.dtype, indices.shape, place) for place in range(x.ndim)]
    index[axis] = indices
    return scatter(x, tuple(index), updates, reduction)


@lowers("ScatterND")
def scatter_nd(x: jax.Array, indices: jax.Array, updates: jax.Array, *, reduction: str = "none") -> jax.Array:
    """x with slices replaced."""
    return scatter(x, tuple(jnp.moveaxis(indices, -1, 0)), updates, reduction)


@lowers("TensorScatter")
def tensor_scatter(
    past: jax.Array, update: jax.Array, start: jax.Array | None = None, *, axis: int = -2, mode: str = "linear"
) -> jax.Array:
    """A cache with updates written along an axis, from an index per sample on; they wrap around if `circular`."""
    cache, steps = jnp.moveaxis(past, axis, 1), jnp.moveaxis(update, axis, 1)
    place = jnp.arange(steps.shape[1]) + (0 if start is None else start[:, None])
    place = place % cache.shape[1] if mode == "circular" else place
    cache = cache.at[jnp.arange(cache.shape[0])[:, None], place].set(steps)
    return jnp.moveaxis(cache, 1, axis)


@lowers("OneHot", static=(1,))
def one_hot(indices: jax.Array, depth: int | tuple[int, ...], values: jax.Array, *, axis: int = -1) -> jax.Array:
    """values[1] at the indices along a new axis, values[0] elsewhere."""
    depth = int(depth[0] if isinstance(depth, tuple) else depth)
    indices = indices.astype(jnp.int64)
    hot = jax.nn.one_hot(jnp.where(indices < 0, indices + depth, indices), depth, dtype=bool, axis=axis)
    return jnp.where(hot, values[1], values[0])


@lowers("TopK", static=(1,))
def top_k(
    x: jax.Array, k: tuple[int, ...], *, axis: int = -1, largest: int = 1, sorted: int = 1
) -> tuple[jax.Array, jax.Array]:
    """The k largest or least elements and their indices; of equal elements the first."""
    if largest:
        values, places = lax.top_k(jnp.moveaxis(x, axis, -1), k[0])
        return jnp.moveaxis(values, -1, axis), jnp.moveaxis(places, -1, axis).astype(jnp.int64)
    places = lax.slice_in_dim(jnp.argsort(x, axis), 0, k[0], axis=axis)
    return jnp.take_along_axis(x, places, axis), places.astype(jnp.int64)


@lowers("ArgMax", "ArgMin")
def arg_extreme(x: jax.Array, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0, op: str) -> jax.Array:
    """Index of the largest or least element along an axis."""
    find = jnp.argmax if op == "ArgMax" else jnp.argmin
    if select_last_index:
        places = x.shape[axis] - 1 - find(jnp.flip(x, axis), axis, keepdims=bool(keepdims))
    else:
        places = find(x, axis, keepdims=bool(keepdims))
    return places.astype(jnp.int64)
