"""Drawing shapes: sizes that matter (0, 1, odd, equal) within the limits."""

import math
import random

from miscompile.ops.spec import Limits, Shape


def draw_shape(rng: random.Random, limits: Limits, ranks: tuple[int, int] | None = None) -> Shape:
    """Draw a shape with a rank in `ranks` (both ends included) and at most `limits.max_elements` elements."""
    low, high = ranks or (0, limits.max_rank)
    high = max(low, min(high, limits.max_rank))
    rank = low + int(rng.random() * (high - low + 1))
    if ranks is None and rank in (0, 5) and rng.random() < 0.6:
        rank = 1 + int(rng.random() * 4)
    sizes = [draw_size(rng, limits) for _ in range(rank)]
    while math.prod(sizes) > limits.max_elements:
        place = sizes.index(max(sizes))
        sizes[place] = max(1, sizes[place] // 2)
    return tuple(sizes)


def draw_size(rng: random.Random, limits: Limits) -> int:
    """Draw one size: one often, zero rarely, else small."""
    chance = rng.random()
    if chance < limits.zero_size:
        return 0
    if chance < 0.2:
        return 1
    return 2 + int(rng.random() * max(1, limits.max_dim - 1))


def broadcast(*shapes: Shape) -> Shape:
    """Return the shape that `shapes` broadcast to. Raises ValueError when they do not."""
    rank = max(map(len, shapes), default=0)
    result = []
    for axis in range(-rank, 0):
        sizes = {shape[axis] for shape in shapes if len(shape) >= -axis} - {1}
        if len(sizes) > 1:
            raise ValueError(f"shapes {shapes} do not broadcast")
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def broadcasts(*shapes: Shape) -> bool:
    """Tell whether `shapes` broadcast together."""
    for left in range(len(shapes)):
        for right in range(left):
            for a, b in zip(reversed(shapes[left]), reversed(shapes[right]), strict=False):
                if a != b and a != 1 and b != 1:
                    return False
    return True


def draw_partner(rng: random.Random, limits: Limits, *shapes: Shape) -> Shape:
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
