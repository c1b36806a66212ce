"""Functions of one number. Sources: the operator pages of the ONNX documentation."""

import jax
import jax.numpy as jnp
from jax import lax

from miscompile.targets.lowering.table import lowers


@lowers("Abs")
def absolute(x: jax.Array) -> jax.Array:
    """Magnitude; that of the least integer wraps around."""
    return jnp.abs(x)


@lowers("Neg")
def negative(x: jax.Array) -> jax.Array:
    """Opposite number."""
    return -x


@lowers("Exp")
def exp(x: jax.Array) -> jax.Array:
    """Natural exponential."""
    return jnp.exp(x)


@lowers("Log")
def log(x: jax.Array) -> jax.Array:
    """Natural logarithm."""
    return jnp.log(x)


@lowers("Sqrt")
def sqrt(x: jax.Array) -> jax.Array:
    """Square root."""
    return jnp.sqrt(x)


@lowers("Reciprocal")
def reciprocal(x: jax.Array) -> jax.Array:
    """One divided by x."""
    return 1 / x


@lowers("Sin")
def sin(x: jax.Array) -> jax.Array:
    """Sine."""
    return jnp.sin(x)


@lowers("Cos")
def cos(x: jax.Array) -> jax.Array:
    """Cosine."""
    return jnp.cos(x)


@lowers("Tan")
def tan(x: jax.Array) -> jax.Array:
    """Tangent."""
    return jnp.tan(x)


@lowers("Asin")
def asin(x: jax.Array) -> jax.Array:
    """Inverse sine."""
    return jnp.arcsin(x)


@lowers("Acos")
def acos(x: jax.Array) -> jax.Array:
    """Inverse cosine."""
    return jnp.arccos(x)


@lowers("Atan")
def atan(x: jax.Array) -> jax.Array:
    """Inverse tangent."""
    return jnp.arctan(x)


@lowers("Sinh")
def sinh(x: jax.Array) -> jax.Array:
    """Hyperbolic sine."""
    return jnp.sinh(x)


@lowers("Cosh")
def cosh(x: jax.Array) -> jax.Array:
    """Hyperbolic cosine."""
    return jnp.cosh(x)


@lowers("Asinh")
def asinh(x: jax.Array) -> jax.Array:
    """Inverse hyperbolic sine."""
    return jnp.arcsinh(x)


@lowers("Acosh")
def acosh(x: jax.Array) -> jax.Array:
    """Inverse hyperbolic cosine."""
    return jnp.arccosh(x)


@lowers("Atanh")
def atanh(x: jax.Array) -> jax.Array:
    """Inverse hyperbolic tangent."""
    return jnp.arctanh(x)


@lowers("Tanh")
def tanh(x: jax.Array) -> jax.Array:
    """Hyperbolic tangent."""
    return jnp.tanh(x)


@lowers("Erf")
def erf(x: jax.Array) -> jax.Array:
    """Error function."""
    return lax.erf(x)


@lowers("Floor")
def floor(x: jax.Array) -> jax.Array:
    """Largest whole number not above x."""
    return jnp.floor(x)


@lowers("Ceil")
def ceil(x: jax.Array) -> jax.Array:
    """Least whole number not below x."""
    return jnp.ceil(x)


@lowers("Round")
def rounded(x: jax.Array) -> jax.Array:
    """Nearest whole number, halves to the even one."""
    return jnp.round(x)


@lowers("Sign")
def sign(x: jax.Array) -> jax.Array:
    """Minus one, zero or one."""
    return jnp.sign(x)


@lowers("IsNaN")
def is_nan(x: jax.Array) -> jax.Array:
    """Tell where x is no number."""
    return jnp.isnan(x)


@lowers("IsInf")
def is_inf(x: jax.Array, *, detect_negative: int = 1, detect_positive: int = 1) -> jax.Array:
    """Tell where x is infinite, with a requested sign."""
    if not detect_positive:
        return jnp.isneginf(x) if detect_negative else jnp.zeros(x.shape, bool)
    return jnp.isinf(x) if detect_negative else jnp.isposinf(x)
