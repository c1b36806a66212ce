"""Samplers and bounds for elementwise operators: broadcasting operands, piecewise monotone functions."""

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.graph.model import TensorType
from miscompile.ops.facts import LIMITS, Bounds, Exactness, Facts, Span
from miscompile.ops.spec import BoundsOf, Call, Operand, OpSpec, Site

_TWICE = 0.06
"""Probability that one value is several operands of a call."""


def reach(dtype: str) -> float:
    """Return the largest magnitude that a generated value of `dtype` may have (the type's own for small integers)."""
    return LIMITS.get(dtype, DTYPES[dtype].high)


def narrow(value: float) -> float:
    """Return `value` as ONNX stores it in a float attribute, that is, rounded to float32."""
    return float(np.float32(value))


def pair(
    site: Site,
    left: Span | None = None,
    right: Span | None = None,
    *,
    dtypes: tuple[str | None, str | None] = (None, None),
    twice: bool = True,
) -> tuple[Operand, Operand]:
    """Return two operands that broadcast together, drawn in either order, with elements in `left` and `right`.

    With `twice`, and no ranges asked for, both are sometimes the same value. Raises RejectedDraft.
    """
    if twice and left == right and dtypes[0] == dtypes[1] and site.rng.random() < _TWICE:
        operand = site.operand(dtypes[0], within=left)
        return operand, operand
    if site.rng.random() < 0.5:
        first = site.operand(dtypes[0], within=left)
        return first, site.partner(first.shape, dtype=dtypes[1], within=right)
    second = site.operand(dtypes[1], within=right)
    return site.partner(second.shape, dtype=dtypes[0], within=left), second


def several(site: Site, most: int = 4) -> tuple[Operand, ...]:
    """Return one to `most` operands of the site's type that broadcast together; one value may be several of them."""
    found = [site.operand()]
    for _ in range(site.rng.randrange(most)):
        if site.rng.random() < _TWICE:
            found.append(site.rng.choice(found))
        else:
            found.append(site.partner(*(operand.shape for operand in found)))
    site.rng.shuffle(found)
    return tuple(found)


def hull(points: Sequence[float], *, integral: bool = False, partial: float = 0.0) -> Bounds:
    """Return the smallest bounds that hold all of `points`."""
    return Bounds(min(points), max(points), integral, partial)


def corners(function: Callable[[float, float], float], left: Facts, right: Facts) -> list[float]:
    """Return `function` at the four corners of two ranges: its extremes, where it is monotone in each argument."""
    return [function(a, b) for a, b in itertools.product((left.lo, left.hi), (right.lo, right.hi))]


def piecewise(function: Callable[[float], float], facts: Facts, turns: Sequence[float] = ()) -> list[float]:
    """Return `function` at the ends of a range and at the turning points inside it: its extremes."""
    points = [facts.lo, facts.hi, *(turn for turn in turns if facts.lo < turn < facts.hi)]
    return [function(point) for point in points]


def binary(
    op: str,
    dtypes: tuple[str, ...],
    bounds: Callable[[Facts, Facts], Bounds],
    exactness: Exactness,
    family: str,
    since: int = 13,
) -> OpSpec:
    """Spec of a broadcasting operator of two operands of one type, without attributes, defined everywhere."""

    def sample(site: Site) -> Call:
        return Call(op, pair(site))

    return OpSpec(
        op, dtypes, sample, of_facts(bounds), exactness, family, since=since, shapes="broadcast", fusion="broadcast"
    )


def of_facts(bounds: Callable[..., Bounds]) -> BoundsOf:
    """Turn a function of the operands' facts into the bounds of an operator with one output."""

    def whole(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
        return (bounds(*(operand.facts for operand in call.inputs if operand is not None)),)

    return whole
