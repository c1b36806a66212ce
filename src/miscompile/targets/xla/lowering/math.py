"""Functions of one number. Sources: the operator pages of the ONNX documentation."""

import jax
import jax.numpy as jnp
from jax import lax

from miscompile.targets.lowering.table import lowers

absolute = lowers("Abs")(lambda x: jnp.abs(x))  # magnitude; that of the least integer wraps around
negative = lowers("Neg")(lambda x: -x)
exp = lowers("Exp")(lambda x: jnp.exp(x))
log = lowers("Log")(lambda x: jnp.log(x))
sqrt = lowers("Sqrt")(lambda x: jnp.sqrt(x))
reciprocal = lowers("Reciprocal")(lambda x: 1 / x)
sin = lowers("Sin")(lambda x: jnp.sin(x))
cos = lowers("Cos")(lambda x: jnp.cos(x))
tan = lowers("Tan")(lambda x: jnp.tan(x))
asin = lowers("Asin")(lambda x: jnp.arcsin(x))
acos = lowers("Acos")(lambda x: jnp.arccos(x))
atan = lowers("Atan")(lambda x: jnp.arctan(x))
sinh = lowers("Sinh")(lambda x: jnp.sinh(x))
cosh = lowers("Cosh")(lambda x: jnp.cosh(x))
asinh = lowers("Asinh")(lambda x: jnp.arcsinh(x))
acosh = lowers("Acosh")(lambda x: jnp.arccosh(x))
atanh = lowers("Atanh")(lambda x: jnp.arctanh(x))
tanh = lowers("Tanh")(lambda x: jnp.tanh(x))
erf = lowers("Erf")(lambda x: lax.erf(x))
floor = lowers("Floor")(lambda x: jnp.floor(x))
ceil = lowers("Ceil")(lambda x: jnp.ceil(x))
rounded = lowers("Round")(lambda x: jnp.round(x))  # nearest whole number, halves to the even one
sign = lowers("Sign")(lambda x: jnp.sign(x))  # minus one, zero or one
is_nan = lowers("IsNaN")(lambda x: jnp.isnan(x))


@lowers("IsInf")
def is_inf(x: jax.Array, *, detect_negative: int = 1, detect_positive: int = 1) -> jax.Array:
    """Tell where x is infinite, with a requested sign."""
    if not detect_positive:
        return jnp.isneginf(x) if detect_negative else jnp.zeros(x.shape, bool)
    return jnp.isinf(x) if detect_negative else jnp.isposinf(x)
