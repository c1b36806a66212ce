"""Linear algebra. Sources: the operator pages of the ONNX documentation."""

import jax
import jax.numpy as jnp

from miscompile.targets.lowering.table import lowers

matmul = lowers("MatMul")(lambda x, y: jnp.matmul(x, y))  # product of matrices, or of stacks of them


@lowers("Gemm")
def gemm(
    a: jax.Array,
    b: jax.Array,
    c: jax.Array | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,  # noqa: N803 - ONNX's name
    transB: int = 0,  # noqa: N803
) -> jax.Array:
    """Product of two matrices plus a third, each with a factor."""
    y = (a.T if transA else a) @ (b.T if transB else b)
    if alpha != 1:
        y = (alpha * y).astype(a.dtype)
    if c is None:
        return y
    return y + (c if beta == 1 else (beta * c).astype(a.dtype))


einsum = lowers("Einsum")(lambda *values, equation: jnp.einsum(equation, *values))


def centred(x: jax.Array, zero: jax.Array | None, axis: int) -> jax.Array:
    """Return x minus the zero point as 32-bit integers; there may be one zero point for each index of `axis`."""
    x = x.astype(jnp.int32)
    if zero is None:
        return x
    if zero.ndim == 1 and x.ndim > 1:
        zero = jnp.expand_dims(zero, [place for place in range(x.ndim) if place != axis % x.ndim])
    return x - zero.astype(jnp.int32)


@lowers("MatMulInteger")
def matmul_integer(
    a: jax.Array, b: jax.Array, a_zero: jax.Array | None = None, b_zero: jax.Array | None = None
) -> jax.Array:
    """Product of integers minus their zero points, in 32 bits."""
    return jnp.matmul(centred(a, a_zero, -2), centred(b, b_zero, -1))


@lowers("Det")
def determinant(x: jax.Array) -> jax.Array:
    """Determinant of each matrix, computed in float32 at least, because the solver has no smaller types."""
    wide = jnp.promote_types(x.dtype, jnp.float32)
    return jnp.linalg.det(x.astype(wide)).astype(x.dtype)
