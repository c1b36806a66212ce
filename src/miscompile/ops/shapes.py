"""Drawing shapes: sizes that matter (0, 1, odd, equal) within the limits."""

import math
import random

from miscompile.ops.spec import Call, OperatorLimits, OpSpec, Shape, Site

_HIGH_RANK = 5
"""Ranks from here on are drawn rarely, like the rank zero."""


def draw_shape(rng: random.Random, limits: OperatorLimits, ranks: tuple[int, int] | None = None) -> Shape:
    """Draw a shape with a rank in `ranks` (both ends included) and at most `limits.max_elements` elements.

    Ranks below `limits.min_rank` are only drawn where `ranks` has no greater one.
    """
    low, high = ranks or (0, limits.max_rank)
    high = max(low, min(high, limits.max_rank))
    low = max(low, min(high, limits.min_rank))
    rank = low + int(rng.random() * (high - low + 1))
    if ranks is None and (rank == 0 or rank >= _HIGH_RANK) and high and rng.random() < 0.6:
        rank = 1 + int(rng.random() * min(4, high))
    sizes = [draw_size(rng, limits) for _ in range(rank)]
    if limits.least_elements and sizes and rng.random() < _LARGE:
        place = int(rng.random() * rank)
        rest = max(1, math.prod(sizes[:place] + sizes[place + 1 :]))
        sizes[place] = max(1, -(-limits.least_elements // rest) + int(rng.random() * 3) - 1)
    return fitted(rng, sizes, limits)


def fitted(rng: random.Random, sizes: list[int], limits: OperatorLimits) -> Shape:
    """Return the shape with no more elements than the limits allow; sizes at boundaries are kept as long as can be."""
    while math.prod(sizes) > limits.max_elements:
        most = max(sizes)
        place = sizes.index(most)
        others = [i for i, size in enumerate(sizes) if size > 1 and i != place] if limits.boundaries else []
        if others:
            sizes[others[int(rng.random() * len(others))]] = 1
        else:
            sizes[place] = max(1, most // 2)
    return tuple(sizes)


_LARGE = 0.6
"""Share of the shapes that have at least `least_elements`, where there are such limits."""

_AT_BOUNDARY = 0.4
"""Share of the sizes that are taken from `boundaries`, where there are some."""

_FEW_BESIDE = 3
"""The largest of the other sizes beside those at boundaries, so that tensors stay small."""


def draw_size(rng: random.Random, limits: OperatorLimits) -> int:
    """Draw one size: one often, zero rarely, else small; or with a share one at a boundary."""
    chance = rng.random()
    if chance < limits.zero_size:
        return 0
    if limits.boundaries and chance > 1 - _AT_BOUNDARY:
        return limits.boundaries[int(rng.random() * len(limits.boundaries))]
    if chance < 0.2:
        return 1
    return 2 + int(rng.random() * max(1, (_FEW_BESIDE if limits.boundaries else limits.max_dim) - 1))


def draw_count(rng: random.Random, limits: OperatorLimits, most: int) -> int:
    """Draw a number of channels, features or heads, at least one: at most `most`, or at a boundary."""
    if limits.boundaries and rng.random() < _AT_BOUNDARY:
        return max(1, limits.boundaries[int(rng.random() * len(limits.boundaries))])
    return rng.randint(1, most)


def broadcast(*shapes: Shape) -> Shape:
    """Return the shape that `shapes` broadcast to. Raises ValueError when they do not."""
    if len(shapes) == 2 and shapes[0] == shapes[1]:
        return shapes[0]
    result = list(shapes[0]) if shapes else []
    for shape in shapes[1:]:
        if len(shape) > len(result):
            result[:0] = shape[: len(shape) - len(result)]
        start = len(result) - len(shape)
        for place, size in enumerate(shape, start):
            have = result[place]
            if have == 1:
                result[place] = size
            elif size not in (1, have):
                raise ValueError(f"shapes {shapes} do not broadcast")
    return tuple(result)


def promised_shapes(spec: OpSpec, call: Call) -> tuple[Shape, ...] | None:
    """Return the shapes of the outputs of `call` by the rule of `spec`; None: the caller needs inference.

    Raises ValueError when the operands do not broadcast where they must.
    """
    rule = spec.shapes
    if not isinstance(rule, str):
        return rule(call)
    if rule == "inferred":
        return None
    if rule == "first" or len(call.inputs) == 1:
        return (call.operand(0).shape,) * call.outputs
    return (broadcast(*[operand.shape for operand in call.inputs if operand is not None]),) * call.outputs


def broadcasts(*shapes: Shape) -> bool:
    """Tell whether `shapes` broadcast together."""
    if len(shapes) == 2:  # by far the most common question
        left, right = shapes
        return all(a in (1, b) or b == 1 for a, b in zip(left[::-1], right[::-1], strict=False))
    try:
        broadcast(*shapes)
    except ValueError:
        return False
    return True


def draw_partner(rng: random.Random, limits: OperatorLimits, *shapes: Shape) -> Shape:
    """Draw a shape that broadcasts with all of `shapes`: the same, a part of it, ones, or of higher rank."""
    whole = broadcast(*shapes)
    chance = rng.random()
    if chance < 0.35:
        return whole
    if chance < 0.45:
        return ()
    cut = whole[int(rng.random() * (len(whole) + 1)) :] if chance < 0.7 else whole
    partner = tuple(1 if rng.random() < 0.3 else size for size in cut)
    if chance > 0.9 and len(whole) < limits.max_rank:
        partner = (1,) * (len(whole) - len(partner)) + partner
        first = draw_size(rng, limits)
        if first * math.prod(whole) <= limits.max_elements:
            partner = (first, *partner)
    return partner


def matrix_partner(site: Site, left: Shape, *, vector: bool = True) -> Shape:
    """Draw the shape of B so that MatMul(A, B) is defined for an A of shape `left` (rank 1 or more).

    Batch axes are the same, ones, fewer or more than those of A. Raises RejectedDraft when the result is too large.
    """
    rng, inner = site.rng, left[-1]
    if vector and rng.random() < 0.15:
        return (inner,)
    matrix = (inner, min(draw_size(rng, site.limits), max(1, site.limits.max_elements // max(1, inner))))
    batch = left[:-2]
    chance = rng.random()
    if chance < 0.4 or (not batch and chance < 0.7):
        return matrix
    kept = batch[rng.randrange(len(batch) + 1) :] if chance < 0.7 else batch
    drawn = tuple(1 if rng.random() < 0.25 else draw_size(rng, site.limits) if d == 1 else d for d in kept)
    if chance > 0.9 and len(batch) + 3 <= site.limits.max_rank:
        drawn = (rng.randint(1, 3), *(1,) * (len(batch) - len(drawn)), *drawn)
    result = math.prod(max(pair) for pair in zip(drawn, batch[len(batch) - len(drawn) :], strict=False))
    if result * max(1, math.prod(left[-2:-1])) * max(1, matrix[1]) > site.limits.max_elements:
        return matrix
    return (*drawn, *matrix)
