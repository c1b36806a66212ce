"""Bounds that allow for rounding, for operators that sum many terms."""

from miscompile.base.dtypes import DTYPES
from miscompile.ops.facts import Bounds, Facts, Span


def span(facts: Facts) -> Span:
    """Return the interval of `facts`."""
    return facts.lo, facts.hi


def times(left: Span, right: Span) -> Span:
    """Return the interval of a product."""
    corners = (left[0] * right[0], left[0] * right[1], left[1] * right[0], left[1] * right[1])
    return min(corners), max(corners)


def minus(left: Span, right: Span) -> Span:
    """Return the interval of a difference."""
    return left[0] - right[1], left[1] - right[0]


def widest(interval: Span) -> float:
    """Return the largest magnitude in `interval`."""
    return max(abs(interval[0]), abs(interval[1]))


def accumulated(dtype: str, lo: float, hi: float, *, terms: int, partial: float, integral: bool) -> Bounds:
    """Return bounds of a sum of `terms` terms in [lo, hi] whose partial sums reach `partial`.

    Integers that the type holds are summed exactly. Anything else may leave the mathematical interval by an ulp of
    the largest partial sum at each step; a result is taken to be no better than float32 even in float64, since
    attributes are float32.
    """
    info = DTYPES[dtype]
    if info.kind != "float" or (integral and partial <= 2.0**info.digits):
        return Bounds(lo, hi, integral, partial)
    slack = (terms + 4) * max(info.eps, 2.0**-23) * max(partial, abs(lo), abs(hi))
    return Bounds(lo - slack, hi + slack, integral=False, partial=partial)


def dot(
    dtype: str, terms: int, left: Facts, right: Facts, *, padded: bool = False, bias: Facts | None = None
) -> Bounds:
    """Return bounds of a sum of `terms` products of elements of `left` and `right`, plus `bias`.

    `padded`: some of the products may be zero because they lie in padding.
    """
    lo, hi = times(span(left), span(right))
    partial = terms * max(abs(lo), abs(hi))
    if padded:
        lo, hi = min(lo, 0.0), max(hi, 0.0)
    integral = left.integral and right.integral
    lo, hi = terms * lo, terms * hi
    if bias is not None:
        lo, hi, partial, integral = lo + bias.lo, hi + bias.hi, partial + bias.magnitude, integral and bias.integral
    return accumulated(dtype, lo, hi, terms=terms, partial=partial, integral=integral)


def rounded(dtype: str, lo: float, hi: float, *, terms: int = 1, partial: float = 0.0) -> Bounds:
    """Return [lo, hi] widened by the rounding of `terms` steps on numbers up to `partial`; never integral."""
    return accumulated(dtype, lo, hi, terms=terms, partial=partial, integral=False)
