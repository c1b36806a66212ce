"""Laws of facts: settled bounds hold, grow with what they are made of, and exactness is never claimed too soon."""

import contextlib
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from miscompile.base.dtypes import DTYPES, FLOATS, INTEGERS
from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import tensor
from miscompile.ops.facts import LIMITS, TRUTH, Bounds, Exactness, Facts, measure, settle

WRAPPING = tuple(dtype for dtype in INTEGERS if dtype not in ("int32", "int64"))
EXACT_WHOLE = (Facts(-1, 1, integral=True, exact=True),)

floats = st.sampled_from(FLOATS)
classes = st.sampled_from(list(Exactness))
ends = st.floats(-2000, 2000)


@st.composite
def bounds_of(draw: st.DrawFn) -> Bounds:
    lo, hi = sorted((draw(ends), draw(ends)))
    if draw(st.booleans()):
        return Bounds(math.floor(lo), math.ceil(hi), integral=True)
    return Bounds(lo, hi, partial=draw(st.sampled_from((0.0, 100.0))))


@st.composite
def facts_of(draw: st.DrawFn) -> Facts:
    lo, hi = sorted((draw(ends), draw(ends)))
    return Facts(lo, hi, draw(st.booleans()), draw(st.booleans()))


@given(floats, bounds_of(), classes, st.lists(facts_of(), max_size=3))
def test_settled_floats_contain_the_bounds(dtype: str, bounds: Bounds, cls: Exactness, inputs: list[Facts]) -> None:
    with contextlib.suppress(RejectedDraft):
        facts = settle(dtype, bounds, cls, tuple(inputs))
        assert facts.lo <= bounds.lo
        assert bounds.hi <= facts.hi


@given(st.sampled_from((*FLOATS, *INTEGERS)), bounds_of(), st.floats(0, 50), st.floats(0, 50), classes)
def test_settle_is_monotone(dtype: str, bounds: Bounds, below: float, above: float, cls: Exactness) -> None:
    wider = Bounds(bounds.lo - math.ceil(below), bounds.hi + math.ceil(above), bounds.integral, bounds.partial)
    try:
        outer = settle(dtype, wider, cls, EXACT_WHOLE)
    except RejectedDraft:
        return
    inner = settle(dtype, bounds, cls, EXACT_WHOLE)
    assert inner.inside(outer.lo, outer.hi)
    assert inner.exact >= outer.exact


@given(floats, bounds_of(), classes, st.lists(facts_of(), min_size=1, max_size=3))
def test_floats_are_exact_only_with_reason(dtype: str, bounds: Bounds, cls: Exactness, inputs: list[Facts]) -> None:
    try:
        facts = settle(dtype, bounds, cls, tuple(inputs))
    except RejectedDraft:
        return
    if facts.exact:
        assert all(x.exact for x in inputs)
        assert cls not in (Exactness.ROUNDS, Exactness.TRANSCENDENTAL)
        if cls is Exactness.INTEGER:
            assert bounds.integral
            assert all(x.integral for x in inputs)
            assert max(abs(bounds.lo), abs(bounds.hi), bounds.partial) <= 2.0 ** DTYPES[dtype].digits


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
@pytest.mark.parametrize("cls", list(Exactness))
def test_integers_are_exact_unless_they_come_from_rounding(dtype: str, cls: Exactness) -> None:
    facts = settle(dtype, Bounds(0, 1, integral=True), cls, EXACT_WHOLE)
    assert facts.exact == (cls not in (Exactness.ROUNDS, Exactness.TRANSCENDENTAL))
    assert facts.integral
    assert not settle(dtype, Bounds(0, 1, integral=True), cls, (Facts(0, 1),)).exact


@given(st.sampled_from(WRAPPING), st.data())
def test_wrapped_sums_and_products_stay_in_settled_bounds(dtype: str, data: st.DataObject) -> None:
    low, high = int(DTYPES[dtype].low), int(DTYPES[dtype].high)
    numbers = st.integers(low, high)
    (a, b), (c, d) = (sorted((data.draw(numbers), data.draw(numbers))) for _ in range(2))
    x, y = data.draw(st.integers(a, b)), data.draw(st.integers(c, d))
    products = [a * c, a * d, b * c, b * d]
    for value, bounds in ((x + y, Bounds(a + c, b + d)), (x * y, Bounds(min(products), max(products)))):
        facts = settle(dtype, bounds, Exactness.INTEGER, EXACT_WHOLE)
        wrapped = (value - low) % (high - low + 1) + low
        assert facts.lo <= wrapped <= facts.hi
        assert facts.inside(low, high)
        if low <= bounds.lo and bounds.hi <= high:
            assert (facts.lo, facts.hi) == (bounds.lo, bounds.hi)


@pytest.mark.parametrize("dtype", sorted(LIMITS))
def test_overflow_is_rejected(dtype: str) -> None:
    limit = LIMITS[dtype]
    assert settle(dtype, Bounds(-limit, limit), Exactness.MOVES, ()).magnitude == limit
    for bounds in (Bounds(0, limit * 2), Bounds(-limit * 2, 0), Bounds(0, 1, partial=limit * 2)):
        with pytest.raises(RejectedDraft):
            settle(dtype, bounds, Exactness.INTEGER, ())


@pytest.mark.parametrize("dtype", FLOATS)
def test_infinite_bounds_are_rejected(dtype: str) -> None:
    with pytest.raises(RejectedDraft):
        settle(dtype, Bounds(-math.inf, math.inf), Exactness.MOVES, ())


@given(st.lists(st.floats(-300, 300, width=32), min_size=1, max_size=8), st.floats(-300, 300, width=32))
def test_settled_bounds_hold_rounded_sums(elements: list[float], other: float) -> None:
    left, right = np.asarray(elements, np.float32), np.float32(other)
    for dtype in FLOATS:
        a, b = tensor(left, dtype), tensor(np.asarray(right), dtype)
        x, y = measure(a), measure(b)
        facts = settle(dtype, Bounds(x.lo + y.lo, x.hi + y.hi, x.integral and y.integral), Exactness.INTEGER, (x, y))
        total = tensor(np.asarray(a.numbers() + b.numbers()), dtype).numbers()
        assert facts.lo <= float(total.min())
        assert float(total.max()) <= facts.hi
        assert not facts.integral or bool((np.floor(total) == total).all())


@given(st.integers(-60000, 60000))
def test_an_integral_float_beyond_the_significand_is_widened(number: int) -> None:
    assume(abs(number) > 256)
    facts = settle("bfloat16", Bounds(number, number, integral=True), Exactness.INTEGER, EXACT_WHOLE)
    rounded = float(tensor(np.asarray(number, np.float32), "bfloat16").numbers())
    assert facts.lo <= rounded <= facts.hi
    assert not facts.exact


def test_small_float16_results_may_be_subnormal_or_flushed() -> None:
    facts = settle("float16", Bounds(3e-7, 1), Exactness.TRANSCENDENTAL, EXACT_WHOLE)
    assert facts.lo <= 0


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=9))
def test_measure_holds_every_element(elements: list[float]) -> None:
    facts = measure(np.asarray(elements))
    assert facts.lo == min(elements)
    assert facts.hi == max(elements)
    assert facts.integral == all(float(x).is_integer() for x in elements)
    assert facts.exact


def test_measure_of_the_unmeasurable() -> None:
    assert measure(np.zeros((0, 3), np.float32)) == Facts(0, 0, integral=True, exact=True)
    assert measure(np.asarray([1.0, math.nan])).magnitude == math.inf
    assert measure(np.asarray([math.inf])).magnitude == math.inf
    assert measure(np.asarray([True, False])) == TRUTH
    assert measure(tensor(np.asarray([0.5, 2.0], np.float32), "bfloat16")) == Facts(0.5, 2.0, exact=True)
