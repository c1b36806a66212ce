"""Bounds of piecewise monotone functions hold, and operands that broadcast are drawn in every order."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from miscompile.base.rng import stream
from miscompile.ops.elementwise import corners, hull, narrow, pair, piecewise, reach, several
from miscompile.ops.facts import Bounds, Facts
from miscompile.ops.shapes import broadcasts
from miscompile.ops.site import FreshSite

ends = st.floats(-50, 50)


@st.composite
def ranges(draw: st.DrawFn) -> Facts:
    lo, hi = sorted((draw(ends), draw(ends)))
    return Facts(lo, hi)


@given(ranges(), ranges(), st.floats(0, 1), st.floats(0, 1))
def test_corners_hold_products(a: Facts, b: Facts, s: float, t: float) -> None:
    x, y = (min(max(f.lo + u * (f.hi - f.lo), f.lo), f.hi) for f, u in ((a, s), (b, t)))
    bounds = hull(corners(lambda p, q: p * q, a, b))
    assert bounds.lo <= x * y <= bounds.hi


@given(ranges(), st.floats(0, 1))
def test_turning_points_hold_a_bent_function(facts: Facts, share: float) -> None:
    x = min(max(facts.lo + share * (facts.hi - facts.lo), facts.lo), facts.hi)
    bounds = hull(piecewise(lambda v: abs(v - 1), facts, (1.0,)))
    assert bounds.lo <= abs(x - 1) <= bounds.hi


def test_hull_passes_its_marks_on() -> None:
    assert hull([3, -1, 2], integral=True, partial=7) == Bounds(-1, 3, integral=True, partial=7)


@given(st.floats(-100, 100))
def test_narrowed_numbers_are_float32(value: float) -> None:
    assert np.float32(narrow(value)) == narrow(value)
    assert math.isclose(narrow(value), value, rel_tol=1e-7, abs_tol=1e-44)


def test_reach_of_small_integers_is_the_types_own() -> None:
    assert reach("int8") == 127
    assert reach("uint16") == 65535
    assert reach("float16") == 1000


def test_pairs_broadcast_keep_their_ranges_and_sometimes_coincide() -> None:
    coincide = set()
    for seed in range(100):
        site = FreshSite(stream(seed), "float32", 18)
        left, right = pair(site, (0, 1), (2, 3))
        assert left.facts.inside(0, 1)
        assert right.facts.inside(2, 3)
        assert broadcasts(left.shape, right.shape)
        first, second = pair(site)
        coincide.add(first is second)
    assert coincide == {True, False}


def test_several_operands_broadcast_all_together() -> None:
    for seed in range(50):
        operands = several(FreshSite(stream(seed), "int8", 18))
        assert 1 <= len(operands) <= 4
        assert broadcasts(*(operand.shape for operand in operands))
