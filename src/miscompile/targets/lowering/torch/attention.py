"""Attention and rotary position embeddings."""

# ruff: noqa: ANN401 - tensors, and nested sequences of numbers

from typing import Any

import torch

from miscompile.targets.lowering.table import lowers
from miscompile.targets.lowering.torch.names import F


def heads(x: Any, count: int) -> Any:
    """Return (batch, length, heads * size) as (batch, heads, length, size)."""
    return x if x.dim() == 4 else x.reshape(x.shape[0], x.shape[1], count, -1).transpose(1, 2)


@lowers("Attention")
def attention(
    q: Any,
    k: Any,
    v: Any,
    mask: Any = None,
    past_key: Any = None,
    past_value: Any = None,
    lengths: Any = None,
    *,
    is_causal: int = 0,
    kv_num_heads: int = 0,
    q_num_heads: int = 0,
    qk_matmul_output_mode: int = 0,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: str = "",
    outputs: int,
) -> Any:
    """Scaled dot-product attention; also all keys and values, past ones included, on request."""
    if outputs > 3 or lengths is not None:
        raise NotImplementedError("Attention has no lowering that gives its scores, or for keys of several lengths")
    flat = q.dim() == 3
    q, k, v = heads(q, q_num_heads), heads(k, kv_num_heads), heads(v, kv_num_heads)
    past = 0 if past_key is None else past_key.shape[2]
    if past_key is not None:
        k, v = torch.cat((past_key, k), 2), torch.cat((past_value, v), 2)
    allowed = None
    if is_causal and (past or mask is not None or softcap):
        allowed = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(past)
        if mask is not None:
            allowed = mask & allowed if mask.dtype == torch.bool else mask.masked_fill(~allowed, float("-inf"))
    mask = mask if allowed is None else allowed
    shared = q.shape[1] != k.shape[1]
    if softcap:
        y = capped_attention(q, k, v, mask, scale, softcap)
    else:
        causal = bool(is_causal) and mask is None
        y = F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal, scale=scale, enable_gqa=shared)
    y = y.transpose(1, 2).flatten(2) if flat else y
    return (y, k, v)[:outputs] if outputs > 1 else y


def capped_attention(q: Any, k: Any, v: Any, mask: Any, scale: Any, softcap: float) -> Any:
    """Return attention whose scores are limited to softcap * tanh(scores / softcap)."""
    share = q.shape[1] // k.shape[1]
    k, v = torch.repeat_interleave(k, share, 1), torch.repeat_interleave(v, share, 1)
    scores = torch.matmul(q, k.transpose(-2, -1)) * (q.shape[-1] ** -0.5 if scale is None else scale)
    scores = softcap * torch.tanh(scores / softcap)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    return torch.matmul(torch.softmax(scores, -1), v)


@lowers("RotaryEmbedding")
def rotary_embedding(
    x: Any,
    cos: Any,
    sin: Any,
    positions: Any = None,
    *,
    interleaved: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Any:
    """Pairs of elements rotated by the angles of their positions."""
    shape = x.shape
    x = x.reshape(*x.shape[:2], num_heads, -1) if x.dim() == 3 else x.transpose(1, 2)
    if positions is not None:
        cos, sin = cos[positions], sin[positions]
    size = rotary_embedding_dim or x.shape[-1]
    cos, sin = cos[..., : size // 2].unsqueeze(2), sin[..., : size // 2].unsqueeze(2)
    turned, rest = x[..., :size], x[..., size:]
    a, b = (turned[..., 0::2], turned[..., 1::2]) if interleaved else torch.chunk(turned, 2, -1)
    real, imaginary = a * cos - b * sin, a * sin + b * cos
    turned = torch.stack((real, imaginary), -1).flatten(-2) if interleaved else torch.cat((real, imaginary), -1)
    y = torch.cat((turned, rest), -1)
    return y.reshape(shape) if len(shape) == 3 else y.transpose(1, 2)
