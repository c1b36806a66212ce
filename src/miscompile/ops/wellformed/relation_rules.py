"""Rules on relations between operands that onnx's inference does not check.

Samplers keep them; reductions that change a shape, and programs whose sizes vary, may not. Source of each rule: the
operator's page of the ONNX documentation.
"""

from miscompile.ops.spec import Call, Shape
from miscompile.ops.wellformed.rules import CallRules, numbers_of, shape_of


def _reverse_sequence(call: Call) -> bool:
    """One length for each member of the batch."""
    x = call.operand(0)
    if x.rank < 2 or {call.integer("time_axis"), call.integer("batch_axis", 1)} != {0, 1}:
        return False
    return call.operand(1).shape == (x.shape[call.integer("batch_axis", 1)],)


def _scatter_nd(call: Call) -> bool:
    """An update for each index, of the axes that indices do not name."""
    data, places = call.operand(0).shape, call.operand(1).shape
    if not places or places[-1] > len(data):
        return False
    return call.operand(2).shape == (*places[:-1], *data[places[-1] :])


def _gather_nd(call: Call) -> bool:
    """The batch axes are those of the data, and there are enough axes."""
    data, places, batch = call.operand(0).shape, call.operand(1).shape, call.integer("batch_dims")
    if not 0 <= batch < min(len(data), len(places)) or not 1 <= places[-1] <= len(data) - batch:
        return False
    return data[:batch] == places[:batch]


_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def _recurrent(call: Call) -> bool:
    """Weights, biases, lengths and states fit the series: time, batch, features (layout 1: the batch first)."""
    x, weights, inner, gates = call.operand(0).shape, shape_of(call, 1), shape_of(call, 2), _GATES[call.op]
    hidden = call.integer("hidden_size", inner[-1] if inner else 0)
    ways = 2 if call.text("direction") == "bidirectional" else 1
    if len(x) != 3:
        return False
    first = bool(call.integer("layout"))
    batch = x[0] if first else x[1]
    state: Shape = (batch, ways, hidden) if first else (ways, batch, hidden)
    wanted: tuple[Shape, ...] = ((ways, 2 * gates * hidden), (batch,), state, state, (ways, 3 * hidden))
    if weights != (ways, gates * hidden, x[2]) or inner != (ways, gates * hidden, hidden):
        return False
    return all(shape_of(call, place) in (None, shape) for place, shape in enumerate(wanted, 3))


def _attention(call: Call) -> bool:
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


def _rotary(call: Call) -> bool:
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


def _grid_sample(call: Call) -> bool:
    x, grid = call.operand(0).shape, call.operand(1).shape
    return len(grid) == len(x) and len(x) > 2 and grid[0] == x[0] and grid[-1] == len(x) - 2


def _roi_align(call: Call) -> bool:
    boxes = call.operand(1).shape
    return len(call.operand(0).shape) == 4 and len(boxes) == 2 and boxes[1] == 4 and call.operand(2).shape == boxes[:1]


def _loss(call: Call) -> bool:
    """A label for each place, a weight for each class."""
    x = call.operand(0).shape
    if len(x) < 2 or call.operand(1).shape != (x[0], *x[2:]):
        return False
    return shape_of(call, 2) in (None, (x[1],))


def _affine_grid(call: Call) -> bool:
    sizes = numbers_of(call, 1)
    theta = call.operand(0).shape
    return len(theta) == 3 and (
        sizes is None or (theta[0] == sizes[0] and theta[1:] == (len(sizes) - 2, len(sizes) - 1))
    )


def _resize(call: Call) -> bool:
    """A size or scale for each axis, or for each named one; scales are greater than 0."""
    count = len(call.integers("axes")) if "axes" in call.attributes else call.operand(0).rank
    scales = call.operand(2).value if call.has(2) else None
    if scales is not None and not (scales > 0).all():
        return False
    return all(shape_of(call, place) in (None, (0,), (count,)) for place in (2, 3))


def _signal(call: Call) -> bool:
    """A signal's last axis holds real numbers, or pairs; nothing is empty."""
    shape = call.operand(0).shape
    fits = len(shape) == 3 if call.op == "STFT" else len(shape) >= 2
    return fits and 0 not in shape and shape[-1] in (1, 2)


def _col2im(call: Call) -> bool:
    shape = call.operand(0).shape
    return len(shape) == 3 and 0 not in shape


RELATION_RULES: CallRules = {
    **dict.fromkeys(("DFT", "STFT"), _signal),
    "Col2Im": _col2im,
    "ReverseSequence": _reverse_sequence,
    "ScatterND": _scatter_nd,
    "GatherND": _gather_nd,
    **dict.fromkeys(_GATES, _recurrent),
    "Attention": _attention,
    "RotaryEmbedding": _rotary,
    "GridSample": _grid_sample,
    "RoiAlign": _roi_align,
    **dict.fromkeys(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), _loss),
    "AffineGrid": _affine_grid,
    "Resize": _resize,
}
