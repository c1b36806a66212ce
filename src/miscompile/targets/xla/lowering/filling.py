"""Tensors made from shapes and numbers. Sources: the operator pages of the ONNX documentation."""

import jax
import jax.numpy as jnp
import numpy as np

from miscompile.targets.lowering.table import lowers

shape_of = lowers("Shape")(lambda x, *, start=0, end=None: jnp.array(x.shape[start:end], jnp.int64))
size_of = lowers("Size")(lambda x: jnp.array(x.size, jnp.int64))


@lowers("ConstantOfShape", static=(0,))
def constant_of_shape(shape: tuple[int, ...], *, value: jax.Array | None = None) -> jax.Array:
    """The same value everywhere, by default zero."""
    return jnp.zeros(shape, jnp.float32) if value is None else jnp.full(shape, value.reshape(()))


@lowers("Range", static=(0, 1, 2))
def arithmetic_progression(start: float, limit: float, delta: float, *, types: tuple[str, ...]) -> jax.Array:
    """Numbers from `start` to `limit`, which is excluded, in steps of `delta`."""
    count = max(int(np.ceil((limit - start) / delta)), 0)
    return start + delta * jnp.arange(count, dtype=types[0])


@lowers("EyeLike")
def eye_like(x: jax.Array, *, dtype: str | None = None, k: int = 0) -> jax.Array:
    """Ones on diagonal `k`, zeros elsewhere."""
    rows, columns = x.shape
    return jnp.eye(rows, columns, k=k, dtype=x.dtype if dtype is None else dtype)
