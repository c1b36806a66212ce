"""Reductions. Sources: the operator pages of the ONNX documentation.

The axes to reduce are an attribute in old versions of the operators, an operand in new ones.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from miscompile.targets.lowering.table import lowers

Axes = tuple[int, ...] | None


def reduced(given: Axes, axes: Axes, noop: int) -> Axes:
    """Return the axes to reduce, None for all."""
    return given or axes or (() if noop else None)


@lowers("ReduceSum", static=(1,))
def reduce_sum(
    x: jax.Array, given: Axes = None, *, axes: Axes = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> jax.Array:
    """Sum; integers wrap around."""
    return jnp.sum(x, reduced(given, axes, noop_with_empty_axes), x.dtype, keepdims=bool(keepdims))


@lowers("ReduceMean", static=(1,))
def reduce_mean(
    x: jax.Array, given: Axes = None, *, axes: Axes = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> jax.Array:
    """Mean."""
    return jnp.mean(x, reduced(given, axes, noop_with_empty_axes), keepdims=bool(keepdims)).astype(x.dtype)


@lowers("ReduceProd", static=(1,))
def reduce_prod(
    x: jax.Array, given: Axes = None, *, axes: Axes = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> jax.Array:
    """Product; integers wrap around."""
    return jnp.prod(x, reduced(given, axes, noop_with_empty_axes), x.dtype, keepdims=bool(keepdims))


def lowest(dtype: np.dtype) -> np.ndarray:
    """Return the least value of the type, -inf for floats."""
    if jnp.issubdtype(dtype, jnp.integer):
        return np.array(jnp.iinfo(dtype).min, dtype)
    return np.array(False if jnp.issubdtype(dtype, jnp.bool_) else -jnp.inf, dtype)


def highest(dtype: np.dtype) -> np.ndarray:
    """Return the largest value of the type, inf for floats."""
    if jnp.issubdtype(dtype, jnp.integer):
        return np.array(jnp.iinfo(dtype).max, dtype)
    return np.array(True if jnp.issubdtype(dtype, jnp.bool_) else jnp.inf, dtype)


@lowers("ReduceMax", static=(1,))
def reduce_max(
    x: jax.Array, given: Axes = None, *, axes: Axes = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> jax.Array:
    """Largest element; without elements, the least value of the type."""
    axes = reduced(given, axes, noop_with_empty_axes)
    return jnp.max(x, axes, keepdims=bool(keepdims), initial=lowest(x.dtype))


@lowers("ReduceMin", static=(1,))
def reduce_min(
    x: jax.Array, given: Axes = None, *, axes: Axes = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> jax.Array:
    """Least element; without elements, the largest value of the type."""
    axes = reduced(given, axes, noop_with_empty_axes)
    return jnp.min(x, axes, keepdims=bool(keepdims), initial=highest(x.dtype))


@lowers("ReduceL1", static=(1,))
def reduce_l1(
    x: jax.Array, given: Axes = None, *, axes: Axes = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> jax.Array:
    """Sum of magnitudes."""
    return jnp.sum(jnp.abs(x), reduced(given, axes, noop_with_empty_axes), x.dtype, keepdims=bool(keepdims))


@lowers("ReduceL2", static=(1,))
def reduce_l2(
    x: jax.Array, given: Axes = None, *, axes: Axes = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> jax.Array:
    """Root of the sum of squares."""
    squares = jnp.sum(x * x, reduced(given, axes, noop_with_empty_axes), x.dtype, keepdims=bool(keepdims))
    return jnp.sqrt(squares).astype(x.dtype)


@lowers("ReduceSumSquare", static=(1,))
def reduce_sum_square(
    x: jax.Array, given: Axes = None, *, axes: Axes = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> jax.Array:
    """Sum of squares."""
    return jnp.sum(x * x, reduced(given, axes, noop_with_empty_axes), x.dtype, keepdims=bool(keepdims))


@lowers("ReduceLogSum", static=(1,))
def reduce_log_sum(
    x: jax.Array, given: Axes = None, *, axes: Axes = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> jax.Array:
    """Logarithm of the sum."""
    axes = reduced(given, axes, noop_with_empty_axes)
    return jnp.log(jnp.sum(x, axes, keepdims=bool(keepdims))).astype(x.dtype)


@lowers("ReduceLogSumExp", static=(1,))
def reduce_log_sum_exp(
    x: jax.Array, given: Axes = None, *, axes: Axes = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> jax.Array:
    """Logarithm of the sum of exponentials."""
    return jax.nn.logsumexp(x, reduced(given, axes, noop_with_empty_axes), keepdims=bool(keepdims))


@lowers("CumSum", static=(1,))
def cumulative_sum(x: jax.Array, axis: int | tuple[int, ...], *, exclusive: int = 0, reverse: int = 0) -> jax.Array:
    """Cumulative sum along an axis, from either end; `exclusive` omits the element itself."""
    axis = (axis[0] if isinstance(axis, tuple) else axis) % x.ndim
    if exclusive:
        beyond = (-1, 1, 0) if reverse else (1, -1, 0)
        x = lax.pad(x, jnp.zeros((), x.dtype), [beyond if place == axis else (0, 0, 0) for place in range(x.ndim)])
    return lax.cumsum(x, axis, bool(reverse))


@lowers("CumProd", static=(1,))
def cumulative_product(x: jax.Array, axis: int | tuple[int, ...], *, exclusive: int = 0, reverse: int = 0) -> jax.Array:
    """Cumulative product along an axis, from either end; `exclusive` omits the element itself."""
    axis = (axis[0] if isinstance(axis, tuple) else axis) % x.ndim
    if exclusive:
        beyond = (-1, 1, 0) if reverse else (1, -1, 0)
        x = lax.pad(x, jnp.ones((), x.dtype), [beyond if place == axis else (0, 0, 0) for place in range(x.ndim)])
    return lax.cumprod(x, axis, bool(reverse))
