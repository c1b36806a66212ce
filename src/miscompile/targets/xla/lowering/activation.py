"""Activations, softmax and the losses made of it. Sources: the operator pages of the ONNX documentation."""

import jax
import jax.numpy as jnp

from miscompile.targets.lowering.table import lowers

relu = lowers("Relu")(lambda x: jax.nn.relu(x))
leaky_relu = lowers("LeakyRelu")(lambda x, *, alpha=0.009999999776482582: jnp.where(x < 0, alpha * x, x))
elu = lowers("Elu")(lambda x, *, alpha=1.0: jax.nn.elu(x, alpha))
selu = lowers("Selu")(lambda x, *, alpha=1.6732631921768188, gamma=1.0507010221481323: gamma * jax.nn.elu(x, alpha))
celu = lowers("Celu")(lambda x, *, alpha=1.0: jax.nn.celu(x, alpha))
thresholded_relu = lowers("ThresholdedRelu")(lambda x, *, alpha=1.0: jnp.where(x > alpha, x, 0))
hard_sigmoid = lowers("HardSigmoid")(lambda x, *, alpha=0.20000000298023224, beta=0.5: jnp.clip(alpha * x + beta, 0, 1))
hard_swish = lowers("HardSwish")(lambda x: x * jnp.clip(0.1666666716337204 * x + 0.5, 0, 1))
sigmoid = lowers("Sigmoid")(lambda x: jax.nn.sigmoid(x))
softplus = lowers("Softplus")(lambda x: jax.nn.softplus(x))
softsign = lowers("Softsign")(lambda x: jax.nn.soft_sign(x))


@lowers("Gelu")
def gelu(x: jax.Array, *, approximate: str = "none") -> jax.Array:
    """Gaussian error linear unit, exact or by tanh."""
    return jax.nn.gelu(x, approximate=approximate == "tanh")


mish = lowers("Mish")(lambda x: jax.nn.mish(x))


@lowers("Swish")
def swish(x: jax.Array, *, alpha: float = 1.0) -> jax.Array:
    """x * sigmoid(alpha * x)."""
    return x * jax.nn.sigmoid(alpha * x)


swiglu = lowers("SwiGLU")(lambda a, b, *, alpha=1.0: swish(a, alpha=alpha) * b)  # swish of the gate `a`, times `b`


@lowers("Shrink")
def shrink(x: jax.Array, *, bias: float = 0.0, lambd: float = 0.5) -> jax.Array:
    """Zero where x is in [-lambd, lambd], else x moved towards zero by `bias`."""
    bias = jnp.asarray(bias, x.dtype)
    return jnp.where(x < -lambd, x + bias, jnp.where(x > lambd, x - bias, jnp.zeros_like(x)))


@lowers("Clip")
def clip(x: jax.Array, low: jax.Array | None = None, high: jax.Array | None = None) -> jax.Array:
    """x limited to [low, high]; the result is `high` where `low` exceeds it."""
    x = x if low is None else jnp.maximum(x, low)
    return x if high is None else jnp.minimum(x, high)


softmax = lowers("Softmax")(lambda x, *, axis=-1: jax.nn.softmax(x, axis))
log_softmax = lowers("LogSoftmax")(lambda x, *, axis=-1: jax.nn.log_softmax(x, axis))


@lowers("Hardmax")
def hardmax(x: jax.Array, *, axis: int = -1) -> jax.Array:
    """One at the first of the largest, zero elsewhere."""
    return jax.nn.one_hot(jnp.argmax(x, axis), x.shape[axis], dtype=x.dtype, axis=axis)


@lowers("NegativeLogLikelihoodLoss")
def negative_log_likelihood_loss(
    x: jax.Array,
    target: jax.Array,
    weight: jax.Array | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> jax.Array:
    """Negative of the elements at the targets, multiplied by the weights of their classes."""
    valid = jnp.ones(target.shape, bool) if ignore_index is None else target != ignore_index
    target = jnp.where(valid, target, 0)
    chosen = jnp.squeeze(jnp.take_along_axis(x, jnp.expand_dims(target, 1), 1), 1)
    weights = jnp.where(valid, jnp.ones((), x.dtype) if weight is None else weight[target], 0)
    loss = -chosen * weights
    match reduction:
        case "none":
            return loss
        case "sum":
            return jnp.sum(loss)
        case _:
            return jnp.sum(loss) / jnp.sum(weights)


@lowers("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(
    x: jax.Array,
    target: jax.Array,
    weight: jax.Array | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
    outputs: int,
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """Negative log likelihood of the softmax, and the logarithm of the softmax."""
    logs = jax.nn.log_softmax(x, 1)
    loss = negative_log_likelihood_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction)
    return loss if outputs == 1 else (loss, logs)
