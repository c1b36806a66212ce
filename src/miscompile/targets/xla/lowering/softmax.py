"""Softmax and the losses made of it. Sources: the operator pages of the ONNX documentation."""

import jax
import jax.numpy as jnp

from miscompile.targets.lowering.table import lowers

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
    """Negative of the elements at the targets, with the weights of their classes."""
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
