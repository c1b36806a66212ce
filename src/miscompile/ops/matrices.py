"""Shapes of matrix products, shared by the plain and the quantised ones."""

import math

from miscompile.ops.shapes import draw_size
from miscompile.ops.spec import Shape, Site


def matrix_partner(site: Site, left: Shape, *, vector: bool = True) -> Shape:
    """Draw the shape of B so that MatMul(A, B) is defined for an A of shape `left` (rank 1 or more).

    Batch axes are the same, ones, fewer or more than those of A. Raises RejectedDraft when the result is too large.
    """
    rng, inner = site.rng, left[-1]
    if vector and rng.random() < 0.15:
        return (inner,)
    matrix = (inner, draw_size(rng, site.limits))
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
