"""Operators that work element by element. Sources: the operator pages of the ONNX documentation."""

import jax
import jax.numpy as jnp
from jax import lax

from miscompile.targets.lowering.table import lowers

add = lowers("Add")(lambda x, y: x + y)
subtract = lowers("Sub")(lambda x, y: x - y)
multiply = lowers("Mul")(lambda x, y: x * y)


@lowers("Div")
def divide(x: jax.Array, y: jax.Array) -> jax.Array:
    """Quotient; integer division truncates towards zero."""
    return lax.div(*jnp.broadcast_arrays(x, y))


@lowers("Mod")
def modulo(x: jax.Array, y: jax.Array, *, fmod: int = 0) -> jax.Array:
    """Remainder with the sign of the divisor, or with `fmod` that of the dividend."""
    return lax.rem(*jnp.broadcast_arrays(x, y)) if fmod else jnp.remainder(x, y)


@lowers("Pow")
def power(x: jax.Array, y: jax.Array) -> jax.Array:
    """Power, with the element type of the base."""
    if jnp.issubdtype(x.dtype, jnp.integer) and jnp.issubdtype(y.dtype, jnp.floating):
        return jnp.power(x.astype(jnp.float64), y).astype(x.dtype)
    return jnp.power(x, y.astype(x.dtype))


prelu = lowers("PRelu")(lambda x, slope: jnp.where(x < 0, slope * x, x))


@lowers("Max")
def largest(*values: jax.Array) -> jax.Array:
    """Largest of all, elementwise."""
    result = values[0]
    for value in values[1:]:
        result = jnp.maximum(result, value)
    return result


@lowers("Min")
def least(*values: jax.Array) -> jax.Array:
    """Least of all, elementwise."""
    result = values[0]
    for value in values[1:]:
        result = jnp.minimum(result, value)
    return result


@lowers("Sum")
def total(*values: jax.Array) -> jax.Array:
    """Sum of all, elementwise."""
    result = values[0]
    for value in values[1:]:
        result = result + value
    return result


average = lowers("Mean")(lambda *values: total(*values) / len(values))  # mean of all, elementwise
equal = lowers("Equal")(lambda x, y: x == y)
less = lowers("Less")(lambda x, y: x < y)
less_or_equal = lowers("LessOrEqual")(lambda x, y: x <= y)
greater = lowers("Greater")(lambda x, y: x > y)
greater_or_equal = lowers("GreaterOrEqual")(lambda x, y: x >= y)
conjunction = lowers("And", "BitwiseAnd")(lambda x, y: x & y)  # logical AND of bools, bitwise AND of integers
disjunction = lowers("Or", "BitwiseOr")(lambda x, y: x | y)  # logical OR of bools, bitwise OR of integers
exclusive = lowers("Xor", "BitwiseXor")(lambda x, y: x ^ y)  # logical XOR of bools, bitwise XOR of integers
complement = lowers("Not", "BitwiseNot")(lambda x: ~x)  # logical NOT of bools, bitwise NOT of integers


@lowers("BitShift")
def shift(x: jax.Array, y: jax.Array, *, direction: str) -> jax.Array:
    """Bit shift in the given direction."""
    return jnp.left_shift(x, y) if direction == "LEFT" else jnp.right_shift(x, y)


absolute = lowers("Abs")(lambda x: jnp.abs(x))  # magnitude; the least integer wraps around to itself
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
rounded = lowers("Round")(lambda x: jnp.round(x))  # nearest integer; halves round to even
sign = lowers("Sign")(lambda x: jnp.sign(x))  # minus one, zero or one
is_nan = lowers("IsNaN")(lambda x: jnp.isnan(x))


@lowers("IsInf")
def is_inf(x: jax.Array, *, detect_negative: int = 1, detect_positive: int = 1) -> jax.Array:
    """Tell where x is infinite, with a requested sign."""
    if not detect_positive:
        return jnp.isneginf(x) if detect_negative else jnp.zeros(x.shape, bool)
    return jnp.isinf(x) if detect_negative else jnp.isposinf(x)
