"""Activations. Sources: the operator pages of the ONNX documentation."""

import jax
import jax.numpy as jnp

from miscompile.targets.lowering.table import lowers


@lowers("Relu")
def relu(x: jax.Array) -> jax.Array:
    """Zero below zero."""
    return jax.nn.relu(x)


@lowers("LeakyRelu")
def leaky_relu(x: jax.Array, *, alpha: float = 0.009999999776482582) -> jax.Array:
    """Rectifier with the slope `alpha` below zero."""
    return jnp.where(x < 0, alpha * x, x)


@lowers("Elu")
def elu(x: jax.Array, *, alpha: float = 1.0) -> jax.Array:
    """Exponential linear unit."""
    return jax.nn.elu(x, alpha)


@lowers("Selu")
def selu(x: jax.Array, *, alpha: float = 1.6732631921768188, gamma: float = 1.0507010221481323) -> jax.Array:
    """Scaled exponential linear unit."""
    return gamma * jax.nn.elu(x, alpha)


@lowers("Celu")
def celu(x: jax.Array, *, alpha: float = 1.0) -> jax.Array:
    """Continuously differentiable exponential linear unit."""
    return jax.nn.celu(x, alpha)


@lowers("ThresholdedRelu")
def thresholded_relu(x: jax.Array, *, alpha: float = 1.0) -> jax.Array:
    """Zero up to `alpha`."""
    return jnp.where(x > alpha, x, 0)


@lowers("HardSigmoid")
def hard_sigmoid(x: jax.Array, *, alpha: float = 0.20000000298023224, beta: float = 0.5) -> jax.Array:
    """Line between zero and one."""
    return jnp.clip(alpha * x + beta, 0, 1)


@lowers("HardSwish")
def hard_swish(x: jax.Array) -> jax.Array:
    """Product of x and its hard sigmoid."""
    return x * jnp.clip(0.1666666716337204 * x + 0.5, 0, 1)


@lowers("Sigmoid")
def sigmoid(x: jax.Array) -> jax.Array:
    """Logistic function."""
    return jax.nn.sigmoid(x)


@lowers("Softplus")
def softplus(x: jax.Array) -> jax.Array:
    """Logarithm of one plus the exponential."""
    return jax.nn.softplus(x)


@lowers("Softsign")
def softsign(x: jax.Array) -> jax.Array:
    """X divided by one plus its magnitude."""
    return jax.nn.soft_sign(x)


@lowers("Gelu")
def gelu(x: jax.Array, *, approximate: str = "none") -> jax.Array:
    """Gaussian error linear unit, exact or by tanh."""
    return jax.nn.gelu(x, approximate=approximate == "tanh")


@lowers("Mish")
def mish(x: jax.Array) -> jax.Array:
    """Product of x and the tanh of its softplus."""
    return jax.nn.mish(x)


@lowers("Swish")
def swish(x: jax.Array, *, alpha: float = 1.0) -> jax.Array:
    """Product of x and the logistic function of `alpha` times x."""
    return x * jax.nn.sigmoid(alpha * x)


@lowers("SwiGLU")
def swiglu(a: jax.Array, b: jax.Array, *, alpha: float = 1.0) -> jax.Array:
    """Swish of the gate `a`, times `b`."""
    return swish(a, alpha=alpha) * b


@lowers("Shrink")
def shrink(x: jax.Array, *, bias: float = 0.0, lambd: float = 0.5) -> jax.Array:
    """Zero up to `lambd` on both sides, beyond it `bias` closer to zero."""
    bias = jnp.asarray(bias, x.dtype)
    return jnp.where(x < -lambd, x + bias, jnp.where(x > lambd, x - bias, jnp.zeros_like(x)))


@lowers("Clip")
def clip(x: jax.Array, low: jax.Array | None = None, high: jax.Array | None = None) -> jax.Array:
    """Limit; when the limits cross, the upper one holds."""
    x = x if low is None else jnp.maximum(x, low)
    return x if high is None else jnp.minimum(x, high)
