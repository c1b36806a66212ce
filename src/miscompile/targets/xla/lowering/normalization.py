"""Normalisations. Sources: the operator pages of the ONNX documentation."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from miscompile.targets.lowering.table import lowers


def by_channel(x: jax.Array, rank: int) -> jax.Array:
    """Return a vector with one element per channel in a shape that broadcasts to images."""
    return x.reshape(-1, *(1,) * (rank - 2))


@lowers("BatchNormalization")
def batch_normalization(
    x: jax.Array,
    scale: jax.Array,
    bias: jax.Array,
    mean: jax.Array,
    var: jax.Array,
    *,
    epsilon: float = 9.999999747378752e-06,
    momentum: float = 0.8999999761581421,
    training_mode: int = 0,
    outputs: int,
) -> jax.Array | tuple[jax.Array, ...]:
    """Normalisation by the given means and variances, or in training mode by those of the batch."""
    if outputs > 1 and not training_mode:
        raise NotImplementedError("BatchNormalization that trains without training_mode")
    used = mean, var
    if training_mode:
        axes = tuple(axis for axis in range(x.ndim) if axis != 1)
        used = jnp.mean(x, axes), jnp.var(x, axes)
    now, spread = (by_channel(value, x.ndim) for value in used)
    y = (x - now) / jnp.sqrt(spread + epsilon) * by_channel(scale, x.ndim) + by_channel(bias, x.ndim)
    running = [
        (old * momentum + new * (1 - momentum)).astype(old.dtype) for old, new in zip((mean, var), used, strict=True)
    ]
    return y.astype(x.dtype) if outputs == 1 else (y.astype(x.dtype), *running)[:outputs]


@lowers("InstanceNormalization")
def instance_normalization(
    x: jax.Array, scale: jax.Array, bias: jax.Array, *, epsilon: float = 9.999999747378752e-06
) -> jax.Array:
    """Normalisation of each channel of each image."""
    axes = tuple(range(2, x.ndim))
    y = (x - jnp.mean(x, axes, keepdims=True)) * lax.rsqrt(jnp.var(x, axes, keepdims=True) + epsilon)
    return y * by_channel(scale, x.ndim) + by_channel(bias, x.ndim)


def standardized(x: jax.Array, axes: tuple[int, ...], epsilon: float) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return x with mean zero and variance one along `axes`, its mean, and the factor."""
    mean = jnp.mean(x, axes, keepdims=True)
    factor = lax.rsqrt(jnp.var(x, axes, keepdims=True) + epsilon)
    return (x - mean) * factor, mean, factor


@lowers("GroupNormalization")
def group_normalization(
    x: jax.Array,
    scale: jax.Array,
    bias: jax.Array,
    *,
    epsilon: float = 9.999999747378752e-06,
    num_groups: int,
    stash_type: str = "float32",
) -> jax.Array:
    """Normalisation of groups of channels; there is one scale and bias per channel, in old versions per group."""
    groups = x.reshape(x.shape[0], num_groups, -1).astype(jnp.promote_types(x.dtype, stash_type))
    y = standardized(groups, (2,), epsilon)[0].astype(x.dtype).reshape(x.shape)
    scale, bias = (by_channel(jnp.repeat(value, x.shape[1] // value.size), x.ndim) for value in (scale, bias))
    return y * scale + bias


@lowers("LayerNormalization")
def layer_normalization(
    x: jax.Array,
    scale: jax.Array,
    bias: jax.Array | None = None,
    *,
    axis: int = -1,
    epsilon: float = 9.999999747378752e-06,
    stash_type: str = "float32",
    outputs: int,
) -> jax.Array | tuple[jax.Array, ...]:
    """Normalisation of the last axes from `axis` on."""
    axes = tuple(range(axis % x.ndim, x.ndim))
    y, mean, factor = standardized(x.astype(jnp.promote_types(x.dtype, stash_type)), axes, epsilon)
    y = y.astype(x.dtype) * scale
    y = y if bias is None else y + bias
    return y if outputs == 1 else (y, mean.astype(stash_type), factor.astype(stash_type))[:outputs]


@lowers("RMSNormalization")
def rms_normalization(
    x: jax.Array,
    scale: jax.Array,
    *,
    axis: int = -1,
    epsilon: float = 9.999999747378752e-06,
    stash_type: str = "float32",
) -> jax.Array:
    """Division by the root of the mean square along the last axes from `axis` on."""
    wide = x.astype(jnp.promote_types(x.dtype, stash_type))
    squares = jnp.mean(wide * wide, tuple(range(axis % x.ndim, x.ndim)), keepdims=True)
    return (wide * lax.rsqrt(squares + epsilon)).astype(x.dtype) * scale


@lowers("LRN")
def local_response_normalization(
    x: jax.Array, *, alpha: float = 9.999999747378752e-05, beta: float = 0.75, bias: float = 1.0, size: int
) -> jax.Array:
    """Division by a power of the sum of squares over neighbouring channels."""
    window = [size if axis == 1 else 1 for axis in range(x.ndim)]
    padding = [((size - 1) // 2, size // 2) if axis == 1 else (0, 0) for axis in range(x.ndim)]
    squares = lax.reduce_window(x * x, jnp.zeros((), x.dtype), lax.add, window, (1,) * x.ndim, padding)
    return x / (bias + alpha / size * squares) ** beta


@lowers("LpNormalization")
def lp_normalization(x: jax.Array, *, axis: int = -1, p: int = 2) -> jax.Array:
    """Division by the norm along an axis; zero where the norm is zero."""
    sizes = jnp.abs(x) if p == 1 else x * x
    norm = jnp.sum(sizes, axis, keepdims=True)
    norm = norm if p == 1 else jnp.sqrt(norm)
    return jnp.where(norm == 0, 0, x / norm)


@lowers("MeanVarianceNormalization")
def mean_variance_normalization(x: jax.Array, *, axes: tuple[int, ...] = (0, 2, 3)) -> jax.Array:
    """x normalised to mean zero and variance one along `axes`."""
    mean = jnp.mean(x, axes, keepdims=True)
    deviation = jnp.sqrt(jnp.mean(x * x, axes, keepdims=True) - mean * mean)
    return (x - mean) / (deviation + np.float32(1e-9).item())
