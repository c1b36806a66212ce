"""Attention and rotary embeddings. Sources: the operator pages of the ONNX documentation."""

import jax
import jax.numpy as jnp
import numpy as np

from miscompile.targets.lowering.table import lowers


def split_heads(x: jax.Array, heads: int) -> jax.Array:
    """Return (batch, heads, time, size) from (batch, time, heads * size); four axes stay as they are."""
    return x if x.ndim == 4 else x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)


def allowed_pairs(
    mask: jax.Array | None, queries: int, keys: int, causal: int, before: int, lengths: jax.Array | None
) -> jax.Array:
    """Return as a bool mask which query may attend to which key; `before` keys precede the queries."""
    pairs = jnp.ones((queries, keys), bool)
    if mask is not None and mask.dtype == bool:
        missing = keys - mask.shape[-1]
        pairs = jnp.pad(mask, [(0, 0)] * (mask.ndim - 1) + [(0, missing)])
    first = before if lengths is None or before else lengths.reshape(-1, 1, 1, 1) - queries
    if causal:
        pairs = pairs & (jnp.arange(keys) <= jnp.arange(queries)[:, None] + first)
    return pairs if lengths is None else pairs & (jnp.arange(keys) < lengths.reshape(-1, 1, 1, 1))


@lowers("Attention")
def attention(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    mask: jax.Array | None = None,
    past_key: jax.Array | None = None,
    past_value: jax.Array | None = None,
    lengths: jax.Array | None = None,
    *,
    is_causal: int = 0,
    kv_num_heads: int = 0,
    q_num_heads: int = 0,
    qk_matmul_output_mode: int = 0,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: str | None = None,
    outputs: int,
) -> jax.Array | tuple[jax.Array, ...]:
    """Scaled dot-product attention, with past keys and values prepended."""
    flat, dtype = q.ndim == 3, q.dtype
    q, k, v = split_heads(q, q_num_heads), split_heads(k, kv_num_heads), split_heads(v, kv_num_heads)
    k = k if past_key is None else jnp.concatenate([past_key, k], 2)
    v = v if past_value is None else jnp.concatenate([past_value, v], 2)
    present = k, v
    k, v = (jnp.repeat(value, q.shape[1] // value.shape[1], 1) for value in present)
    root = np.sqrt(1 / np.sqrt(q.shape[-1]) if scale is None else scale).item()
    scores = stages = (q * root) @ (k * root).swapaxes(2, 3)
    if softcap:
        scores = softcap * jnp.tanh(scores / softcap)
    capped = scores
    if mask is not None and mask.dtype != bool:
        missing = k.shape[2] - mask.shape[-1]
        bias = jnp.pad(mask, [(0, 0)] * (mask.ndim - 1) + [(0, missing)], constant_values=-jnp.inf)
        scores = scores + bias.astype(dtype)
    before = 0 if past_key is None else past_key.shape[2]
    allowed = allowed_pairs(mask, q.shape[2], k.shape[2], is_causal, before, lengths)
    scores = jnp.where(allowed, scores, -jnp.inf)
    weights = jax.nn.softmax(scores.astype(softmax_precision or dtype), -1).astype(dtype)
    weights = jnp.where(jnp.max(scores, -1, keepdims=True) == -jnp.inf, 0, weights)  # nothing to attend to
    y = weights @ v
    y = y.swapaxes(1, 2).reshape(y.shape[0], y.shape[2], -1) if flat else y
    stages = (stages, capped, scores, weights)
    return y if outputs == 1 else (y, *present, stages[qk_matmul_output_mode])[:outputs]


@lowers("RotaryEmbedding")
def rotary_embedding(
    x: jax.Array,
    cosines: jax.Array,
    sines: jax.Array,
    positions: jax.Array | None = None,
    *,
    interleaved: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> jax.Array:
    """Pairs of elements rotated by an angle that depends on their position."""
    heads = split_heads(x, num_heads)
    if positions is not None:
        cosines, sines = cosines[positions], sines[positions]
    cosines, sines = cosines[:, None], sines[:, None]
    turned, rest = jnp.split(heads, [rotary_embedding_dim or heads.shape[-1]], -1)
    a, b = (turned[..., ::2], turned[..., 1::2]) if interleaved else jnp.split(turned, 2, -1)
    pair = cosines * a - sines * b, sines * a + cosines * b
    turned = jnp.stack(pair, -1).reshape(turned.shape) if interleaved else jnp.concatenate(pair, -1)
    y = jnp.concatenate([turned, rest], -1)
    return y if x.ndim == 4 else y.swapaxes(1, 2).reshape(x.shape)
