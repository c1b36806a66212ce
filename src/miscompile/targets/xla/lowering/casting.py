"""Conversions and choices. Sources: the operator pages of the ONNX documentation."""

import jax
import jax.numpy as jnp
from jax import lax

from miscompile.targets.lowering.table import lowers

NAMES = {
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
}


LACKING = ("int4", "uint4", "int2", "uint2", "float4e2m1")
"""Types of fewer than 8 bits, for which JAX has a memory layout of its own."""


def element_type(name: str) -> str:
    """Return the name that JAX has for an element type of ONNX. Raises NotImplementedError for those without one."""
    if name in LACKING:
        raise NotImplementedError(f"element type {name} has no lowering")
    return NAMES.get(name, name)


def convert(x: jax.Array, dtype: str, saturate: int = 1) -> jax.Array:
    """Convert; floats of 8 bits may saturate instead of overflowing."""
    if saturate and "float8" in str(dtype) and jnp.issubdtype(x.dtype, jnp.floating):
        most = float(jnp.finfo(dtype).max)
        return jnp.clip(x.astype(jnp.float32), -most, most).astype(dtype)
    return x.astype(dtype)


cast = lowers("Cast")(lambda x, *, to, saturate=1: convert(x, element_type(to), saturate))
cast_like = lowers("CastLike")(lambda x, like, *, saturate=1: convert(x, like.dtype, saturate))


@lowers("BitCast")
def bit_cast(x: jax.Array, *, to: str) -> jax.Array:
    """The same bits as another element type of the same width."""
    if x.dtype == bool or to == "bool":
        return x.astype(element_type(to))  # JAX does not bitcast bools; they are bytes of zero and one
    return lax.bitcast_convert_type(x, element_type(to))


where = lowers("Where")(lambda condition, x, y: jnp.where(condition, x, y))
identity = lowers("Identity")(lambda x: x)


@lowers("Dropout", static=(2,))
def dropout(
    x: jax.Array, ratio: jax.Array | None = None, training: bool = False, *, seed: int = 0, outputs: int
) -> jax.Array | tuple[jax.Array, ...]:
    """x itself, and a mask that is true everywhere. There is no lowering for training, because it is random."""
    if training:
        raise NotImplementedError("Dropout in training")
    return x if outputs == 1 else (x, jnp.ones(x.shape, bool))
