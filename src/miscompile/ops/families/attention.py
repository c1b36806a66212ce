"""Attention and rotary position embeddings.

Sources: the operator pages of the ONNX documentation (both operators from opset 23).
"""

import math

import numpy as np

from miscompile.base.dtypes import FLOATS
from miscompile.core.tensor import tensor
from miscompile.graph.attributes import PlainValue, attributes
from miscompile.graph.model import Node, TensorType
from miscompile.ops.facts import Bounds, Exactness, Facts
from miscompile.ops.page_rules import shape_of
from miscompile.ops.rounding import accumulated, dot, rounded
from miscompile.ops.shapes import draw_count
from miscompile.ops.spec import Call, Operand, OpSpec, RunOperands, Shape, Site

_FAMILY = "attention"


def _sample_attention(site: Site) -> Call:
    """Draw an Attention over four axes (batch, heads, length, size) or three (batch, length, heads * size).

    Several query heads may share one key head. Each query may attend to the first key, whatever the mask.
    """
    rng = site.rng
    batch, groups, share = rng.randint(1, 2), rng.randint(1, 2), rng.choice((1, 1, 2))
    heads, size, out = groups * share, 2 * rng.randint(1, 3), draw_count(rng, site.limits, 5)
    queries, keys, past = (
        rng.randint(1, 4),
        draw_count(rng, site.limits, 5),
        rng.randint(1, 3) if rng.random() < 0.2 else 0,
    )
    flat = rng.random() < 0.4

    def laid(count: int, length: int, width: int) -> Shape:
        return (batch, length, count * width) if flat else (batch, count, length, width)

    q = site.operand(shape=laid(heads, queries, size))
    inputs: list[Operand | None] = [q, site.operand(shape=laid(groups, keys, size))]
    inputs.append(site.operand(shape=laid(groups, keys, out)))
    inputs.append(_mask(site, batch, heads, queries, keys + past) if rng.random() < 0.5 else None)
    if past:
        inputs += [site.weight((batch, groups, past, size)), site.weight((batch, groups, past, out))]
    elif inputs[-1] is None:
        inputs.pop()
    found: dict[str, PlainValue | None] = {
        "q_num_heads": heads if flat else None,
        "kv_num_heads": groups if flat else None,
        "is_causal": rng.choice((None, 0, 1)),
        "scale": rng.choice((None, 0.5, 1.0)),
        "softcap": rng.choice((None, None, 2.0)),
    }
    return Call("Attention", tuple(inputs), attributes(found), outputs=3 if past else 1)


def _mask(site: Site, batch: int, heads: int, queries: int, keys: int) -> Operand:
    """Return a mask: numbers to add, or truth values of which the first key's are all true."""
    rng = site.rng
    shape: Shape = rng.choice(((queries, keys), (1, 1, queries, keys), (batch, heads, queries, keys)))
    if rng.random() < 0.5:
        return site.weight(shape)
    allowed = np.array([rng.random() < 0.6 for _ in range(math.prod(shape))]).reshape(shape)
    allowed[..., 0] = True
    return site.known(allowed)


def _values(call: Call) -> Facts:
    """Facts of all values that are averaged: V, and those of the past."""
    v = call.facts(2)
    if not call.has(5):
        return v
    past = call.facts(5)
    return Facts(min(v.lo, past.lo), max(v.hi, past.hi))


def _keys(call: Call) -> Facts:
    k = call.facts(1)
    if not call.has(4):
        return k
    past = call.facts(4)
    return Facts(min(k.lo, past.lo), max(k.hi, past.hi), k.integral and past.integral)


def _bounds_attention(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    """Bounds of weighted means of values; the scores are the largest partial results."""
    dtype, values, keys = types[0].dtype, _values(call), _keys(call)
    scores = dot(dtype, call.operand(0).shape[-1], call.facts(0), keys).partial * max(1.0, call.number("scale", 1.0))
    if call.has(3) and call.operand(3).dtype != "bool":
        scores += call.facts(3).magnitude
    mean = rounded(dtype, values.lo, values.hi, terms=64, partial=values.magnitude)
    found = [Bounds(mean.lo, mean.hi, partial=max(scores, mean.partial))]
    if call.outputs > 1:
        found += [Bounds(keys.lo, keys.hi, keys.integral), Bounds(values.lo, values.hi)]
    return tuple(found)


def _defined_attention(call: Call) -> bool:
    """Guard: nothing is empty, and a mask of truth values leaves the first key to every query."""
    if any(operand is not None and 0 in operand.shape for operand in call.inputs):
        return False
    if not call.has(3) or call.operand(3).dtype != "bool":
        return True
    allowed = call.operand(3).value
    return allowed is not None and bool(allowed[..., 0].all())


def _sample_rotary(site: Site) -> Call:
    """Draw a RotaryEmbedding with caches by position, or for each element of batch and time."""
    rng = site.rng
    batch, heads, steps, size = rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 4), 2 * rng.randint(1, 4)
    flat = rng.random() < 0.4
    x = site.operand(shape=(batch, steps, heads * size) if flat else (batch, heads, steps, size))
    turned = 2 * rng.randint(1, size // 2) if rng.random() < 0.3 else size
    found: dict[str, PlainValue | None] = {
        "num_heads": heads if flat or turned != size else None,
        "rotary_embedding_dim": turned if turned != size else rng.choice((None, 0)),
        "interleaved": rng.choice((None, 0, 1)),
    }
    if rng.random() < 0.5:
        most = rng.randint(1, 6)
        positions = np.array([rng.randrange(most) for _ in range(batch * steps)], np.int64).reshape(batch, steps)
        caches = (_cache(site, (most, turned // 2)), _cache(site, (most, turned // 2)))
        return Call("RotaryEmbedding", (x, *caches, site.known(positions)), attributes(found))
    shape = (batch, steps, turned // 2)
    return Call("RotaryEmbedding", (x, _cache(site, shape), _cache(site, shape)), attributes(found))


def _cache(site: Site, shape: Shape) -> Operand:
    """Return a cache of cosines or sines, or of arbitrary numbers."""
    if site.rng.random() < 0.5:
        return site.weight(shape)
    numbers = np.cos(np.arange(math.prod(shape)) * 0.7).reshape(shape)
    return site.known(tensor(numbers, site.dtype).array, site.dtype)


def _bounds_rotary(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    """Bounds of x1 cos - x2 sin and x1 sin + x2 cos, and of the part of x that is not rotated."""
    x, cos, sin = (call.facts(index) for index in range(3))
    largest = x.magnitude * max(1.0, cos.magnitude + sin.magnitude)
    integral = x.integral and cos.integral and sin.integral
    return (accumulated(types[0].dtype, -largest, largest, terms=2, partial=largest, integral=integral),)


def _defined_rotary(call: Call) -> bool:
    """Guard: positions are known and within the caches."""
    if not call.has(3):
        return True
    positions = call.operand(3).value
    return positions is not None and bool(((positions >= 0) & (positions < call.operand(1).shape[0])).all())


def _page_attention(call: Call) -> bool:
    """Batches, heads and sizes of queries, keys, values and past caches agree; a mask covers all scores."""
    q, k, v = (_heads(call, place) for place in range(3))
    if q is None or k is None or v is None:
        return False
    past = shape_of(call, 4)
    keys = k[2] + (past[2] if past is not None and len(past) == 4 else 0)
    same = q[0] == k[0] == v[0] and k[1] == v[1] and k[2] == v[2] and q[3] == k[3]
    if not same or k[1] == 0 or q[1] % k[1]:
        return False
    if past is not None and (past != (*k[:2], past[2], k[3]) or shape_of(call, 5) != (*v[:2], past[2], v[3])):
        return False
    mask = shape_of(call, 3)
    if mask is not None and len(mask) > 4:
        return False
    scores = (q[0], q[1], q[2], keys)
    tail = scores[4 - len(mask) :] if mask is not None else ()
    return mask is None or all(have == want or have == 1 for have, want in zip(mask, tail, strict=True))


def _heads(call: Call, place: int) -> Shape | None:
    """Return (batch, heads, length, size) of queries, keys or values; None where heads do not divide the size."""
    shape = call.operand(place).shape
    if len(shape) == 4:
        return shape
    heads = call.integer("kv_num_heads" if place else "q_num_heads")
    if len(shape) != 3 or heads < 1 or shape[2] % heads:
        return None
    return shape[0], heads, shape[1], shape[2] // heads


def _page_rotary(call: Call) -> bool:
    """Caches have half the rotated size, by position, or for each batch element and step."""
    x, heads, part = call.operand(0).shape, call.integer("num_heads"), call.integer("rotary_embedding_dim")
    if len(x) == 3 and (heads < 1 or x[2] % heads):
        return False
    batch, steps, size = (x[0], x[2], x[3]) if len(x) == 4 else (x[0], x[1], x[-1] // max(heads, 1))
    cache = call.operand(1).shape
    turned = part or size
    if turned % 2 or turned > size or call.operand(2).shape != cache or cache[-1] != turned // 2:
        return False
    return call.operand(3).shape == (batch, steps) if call.has(3) else cache[:-1] == (batch, steps)


def _inside_cache(node: Node, value: RunOperands) -> bool:
    """Positions are indices of the cache."""
    cache, positions = value(1), value(3)
    if cache is None or positions is None or not cache.shape:
        return True
    return bool(((positions.array >= 0) & (positions.array < cache.shape[0])).all())


SPECS = (
    OpSpec(
        "Attention", FLOATS, _sample_attention, _bounds_attention, Exactness.TRANSCENDENTAL, _FAMILY,
        _defined_attention, since=23, well_formed=_page_attention,
    ),
    OpSpec(
        "RotaryEmbedding", ("float32", "float16", "bfloat16"), _sample_rotary, _bounds_rotary, Exactness.INTEGER,
        _FAMILY, _defined_rotary, since=23, well_formed=_page_rotary, defined_on=_inside_cache,
    ),
)  # fmt: skip
