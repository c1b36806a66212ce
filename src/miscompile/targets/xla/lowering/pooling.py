"""Pooling. Sources: the operator pages of the ONNX documentation."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from miscompile.targets.lowering.table import lowers
from miscompile.targets.xla.lowering.convolution import OptionalInts, Padding, padding_of
from miscompile.targets.xla.lowering.reduction import lowest


def windows(
    x: jax.Array,
    kernel: tuple[int, ...],
    strides: OptionalInts,
    dilations: OptionalInts,
    pads: OptionalInts,
    auto: str,
    ceil: int,
) -> tuple[Padding, Padding, dict[str, Any]]:
    """Return the padding, the padding with `ceil_mode`'s addition at the end, and the window's other keywords."""
    rank = len(kernel)
    strides, dilations = strides or (1,) * rank, dilations or (1,) * rank
    reach = tuple((size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True))
    padding = padding_of(x.shape[2:], reach, strides, pads, auto)
    larger = []
    for size, most, step, (before, after) in zip(x.shape[2:], reach, strides, padding, strict=True):
        steps = -(-(size + before + after - most) // step) if ceil and auto == "NOTSET" else 0
        steps -= steps * step >= size + before  # a window must not begin in the end padding
        larger.append((before, max(after, steps * step + most - size - before)))
    shape = {"window_dimensions": kernel, "window_strides": strides, "window_dilation": dilations}
    return padding, [(0, 0), (0, 0), *larger], {name: (1, 1, *sizes) for name, sizes in shape.items()}


@lowers("MaxPool")
def max_pool(
    x: jax.Array,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: OptionalInts = None,
    kernel_shape: tuple[int, ...],
    pads: OptionalInts = None,
    storage_order: int = 0,
    strides: OptionalInts = None,
    outputs: int,
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """Largest element in each window, and its flat index in x."""
    _, padding, window = windows(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    least = lowest(x.dtype)
    if outputs == 1:
        return lax.reduce_window(x, least, lax.max, padding=padding, **window)
    spatial = x.shape[:1:-1] if storage_order else x.shape[2:]
    places = jnp.arange(x.size, dtype=jnp.int64).reshape(*x.shape[:2], *spatial)
    places = places.transpose(0, 1, *range(x.ndim - 1, 1, -1)) if storage_order else places

    def better(a: tuple[jax.Array, jax.Array], b: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        first = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] <= b[1]))
        return jnp.where(first, a[0], b[0]), jnp.where(first, a[1], b[1])

    start = (least, jnp.array(x.size, jnp.int64))
    return tuple(lax.reduce_window((x, places), start, better, padding=padding, **window))


@lowers("AveragePool")
def average_pool(
    x: jax.Array,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: OptionalInts = None,
    kernel_shape: tuple[int, ...],
    pads: OptionalInts = None,
    strides: OptionalInts = None,
) -> jax.Array:
    """Mean of the elements in each window. Padding counts on request; the padding that `ceil_mode` adds never does."""
    inner, padding, window = windows(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    zero = jnp.zeros((), x.dtype)
    counted = lax.pad(
        jnp.ones((1, 1, *x.shape[2:]), x.dtype),
        jnp.asarray(count_include_pad, x.dtype),
        [(0, 0, 0), (0, 0, 0), *((*pair, 0) for pair in inner)],
    )
    beyond = [(0, 0), (0, 0), *((0, pair[1] - old[1]) for pair, old in zip(padding[2:], inner, strict=True))]
    counts = lax.reduce_window(counted, zero, lax.add, padding=beyond, **window)
    return lax.reduce_window(x, zero, lax.add, padding=padding, **window) / counts


@lowers("LpPool")
def lp_pool(
    x: jax.Array,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: OptionalInts = None,
    kernel_shape: tuple[int, ...],
    p: int = 2,
    pads: OptionalInts = None,
    strides: OptionalInts = None,
) -> jax.Array:
    """p-norm of the elements in each window."""
    _, padding, window = windows(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    powers = lax.reduce_window(jnp.abs(x) ** p, jnp.zeros((), x.dtype), lax.add, padding=padding, **window)
    return powers ** (1 / p)


global_average_pool = lowers("GlobalAveragePool")(lambda x: jnp.mean(x, range(2, x.ndim), keepdims=True))
global_max_pool = lowers("GlobalMaxPool")(lambda x: jnp.max(x, range(2, x.ndim), keepdims=True))


@lowers("GlobalLpPool")
def global_lp_pool(x: jax.Array, *, p: int = 2) -> jax.Array:
    """p-norm of each channel."""
    return jnp.sum(jnp.abs(x) ** p, range(2, x.ndim), keepdims=True) ** (1 / p)
