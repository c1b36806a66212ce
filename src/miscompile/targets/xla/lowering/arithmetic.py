"""Arithmetic, comparison and logic, with broadcasting. Sources: the operator pages of the ONNX documentation."""

import jax
import jax.numpy as jnp
from jax import lax

from miscompile.targets.lowering.table import lowers


@lowers("Add")
def add(x: jax.Array, y: jax.Array) -> jax.Array:
    """Sum."""
    return x + y


@lowers("Sub")
def subtract(x: jax.Array, y: jax.Array) -> jax.Array:
    """Difference."""
    return x - y


@lowers("Mul")
def multiply(x: jax.Array, y: jax.Array) -> jax.Array:
    """Product."""
    return x * y


@lowers("Div")
def divide(x: jax.Array, y: jax.Array) -> jax.Array:
    """Quotient; that of integers is cut off towards zero."""
    return lax.div(*jnp.broadcast_arrays(x, y))


@lowers("Mod")
def modulo(x: jax.Array, y: jax.Array, *, fmod: int = 0) -> jax.Array:
    """Remainder with the sign of the divisor, or with `fmod` that of the dividend."""
    return lax.rem(*jnp.broadcast_arrays(x, y)) if fmod else jnp.remainder(x, y)


@lowers("Pow")
def power(x: jax.Array, y: jax.Array) -> jax.Array:
    """Power, of the type of the base."""
    if jnp.issubdtype(x.dtype, jnp.integer) and jnp.issubdtype(y.dtype, jnp.floating):
        return jnp.power(x.astype(jnp.float64), y).astype(x.dtype)
    return jnp.power(x, y.astype(x.dtype))


@lowers("PRelu")
def prelu(x: jax.Array, slope: jax.Array) -> jax.Array:
    """Rectifier with a slope below zero."""
    return jnp.where(x < 0, slope * x, x)


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


@lowers("Mean")
def average(*values: jax.Array) -> jax.Array:
    """Mean of all, elementwise."""
    return total(*values) / len(values)


@lowers("Equal")
def equal(x: jax.Array, y: jax.Array) -> jax.Array:
    """Tell where both are equal."""
    return x == y


@lowers("Less")
def less(x: jax.Array, y: jax.Array) -> jax.Array:
    """Tell where the first is less."""
    return x < y


@lowers("LessOrEqual")
def less_or_equal(x: jax.Array, y: jax.Array) -> jax.Array:
    """Tell where the first is not greater."""
    return x <= y


@lowers("Greater")
def greater(x: jax.Array, y: jax.Array) -> jax.Array:
    """Tell where the first is greater."""
    return x > y


@lowers("GreaterOrEqual")
def greater_or_equal(x: jax.Array, y: jax.Array) -> jax.Array:
    """Tell where the first is not less."""
    return x >= y


@lowers("And", "BitwiseAnd")
def conjunction(x: jax.Array, y: jax.Array) -> jax.Array:
    """And, of truth values or of bits."""
    return x & y


@lowers("Or", "BitwiseOr")
def disjunction(x: jax.Array, y: jax.Array) -> jax.Array:
    """Or, of truth values or of bits."""
    return x | y


@lowers("Xor", "BitwiseXor")
def exclusive(x: jax.Array, y: jax.Array) -> jax.Array:
    """Exclusive or, of truth values or of bits."""
    return x ^ y


@lowers("Not", "BitwiseNot")
def complement(x: jax.Array) -> jax.Array:
    """Not, of truth values or of bits."""
    return ~x


@lowers("BitShift")
def shift(x: jax.Array, y: jax.Array, *, direction: str) -> jax.Array:
    """Shift of bits."""
    return jnp.left_shift(x, y) if direction == "LEFT" else jnp.right_shift(x, y)
