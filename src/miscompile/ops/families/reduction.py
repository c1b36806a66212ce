"""Reductions along axes, and the cumulative sum.

Sources: the operator pages of the ONNX documentation. `axes` was an attribute before opset 18 (13 for ReduceSum) and is
an input since. Integer types are left out of mean, norm and logarithms, because the specification does not define how a
fraction is rounded to an integer. Extremum, mean and logarithm of an empty reduction are never drawn.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from miscompile.base.dtypes import DTYPES, FLOATS, NUMBERS, PLAIN
from miscompile.base.errors import RejectedDraft
from miscompile.graph.attributes import attributes
from miscompile.graph.model import TensorType
from miscompile.ops import output_shapes as rules
from miscompile.ops.facts import Bounds, Exactness, Facts, settle
from miscompile.ops.page_rules import listed_axes, numbers_of
from miscompile.ops.spec import Call, Operand, OpSpec, Site
from miscompile.ops.special import ORDER, SUMS
from miscompile.ops.structural import (
    INDEX_TYPES,
    accumulated,
    draw_axes,
    draw_axis,
    kept,
    numbers,
    scalar,
    signed,
    vector,
    with_zero,
)

_HUGE = 1e300
_ATTEMPTS = 6
_LOG_DOMAIN = (1e-3, math.inf)
_EXP_DOMAIN = (-8, 6)

ReductionInterval = Callable[[Facts, int], Bounds]
"""Bounds of a reduction of `n` elements with the given facts."""


def reduced_axes(call: Call) -> tuple[int, ...] | None:
    """Return the axes that `call` reduces, counted from the front; None when they are not known."""
    rank = call.operand(0).rank
    given = numbers(call, 1) if call.has(1) else call.integers("axes")
    if given is None:
        return None
    if not given:
        return () if call.integer("noop_with_empty_axes") else tuple(range(rank))
    return tuple(axis % rank for axis in given)


def _count(call: Call) -> int | None:
    """Return how many elements make one element of the result; None when that is not known."""
    axes = reduced_axes(call)
    return None if axes is None else math.prod(call.operand(0).shape[axis] for axis in axes)


def _sum(x: Facts, n: int) -> Bounds:
    return Bounds(n * x.lo, n * x.hi, x.integral, n * x.magnitude)


def _mean(x: Facts, n: int) -> Bounds:
    return Bounds(x.lo, x.hi, partial=n * x.magnitude)


def _product(x: Facts, n: int) -> Bounds:
    reach = _HUGE if x.magnitude > 1 and n * math.log(x.magnitude) > 600 else x.magnitude**n
    return Bounds(0 if x.lo >= 0 and n else -reach, reach, x.integral, max(1.0, x.magnitude, reach))


def _l1(x: Facts, n: int) -> Bounds:
    return Bounds(0, n * x.magnitude, x.integral)


def _l2(x: Facts, n: int) -> Bounds:
    return Bounds(0, math.sqrt(n) * x.magnitude, partial=n * x.magnitude**2)


def _log_sum(x: Facts, n: int) -> Bounds:
    return Bounds(math.log(n * x.lo), math.log(n * x.hi), partial=n * x.hi)


def _log_sum_exp(x: Facts, n: int) -> Bounds:
    return Bounds(x.lo + math.log(n), x.hi + math.log(n), partial=n * math.exp(x.hi))


def _sum_square(x: Facts, n: int) -> Bounds:
    return Bounds(0, n * x.magnitude**2, x.integral)


def _extremum(x: Facts, _: int) -> Bounds:
    return kept(x)


def _bounds(interval: ReductionInterval, exactness: Exactness, call: Call, n: int) -> Bounds:
    """Bounds of one reduction of `n` elements, with the rounding of its partial sums."""
    dtype = call.operand(0).dtype
    found = interval(call.facts(), n)
    if exactness is Exactness.MOVES:
        return found
    slack = n * DTYPES[dtype].eps if exactness is Exactness.TRANSCENDENTAL else 0.0
    return accumulated(Bounds(found.lo - slack, found.hi + slack, found.integral, found.partial), n, dtype)


def reduction(
    op: str,
    interval: ReductionInterval,
    exactness: Exactness,
    *,
    dtypes: tuple[str, ...] = NUMBERS,
    prefers: tuple[float, float] | None = None,
    domain: tuple[float, float] | None = None,
    empty: bool = False,
    moved: int = 18,
) -> OpSpec:
    """Spec of a reduction.

    `domain` is the interval in which it is defined, `prefers` one that keeps the result small; unsigned integers wrap
    around and need neither. `empty`: the reduction of no elements is defined. `moved`: the opset in which axes became
    an input.
    """

    def check(call: Call) -> Bounds:
        n = _count(call)
        if n is None or (n == 0 and not empty):
            raise RejectedDraft(f"{op} of no or unknown elements")
        return _bounds(interval, exactness, call, n)

    def sample(site: Site) -> Call:
        within = domain or (None if site.dtype.startswith("u") else prefers)
        x = site.operand(within=within)
        if math.isinf(x.facts.magnitude):  # special values, which need not keep within limits
            return _draw(site, op, x, moved, few=False)
        for attempt in range(_ATTEMPTS):
            call = _draw(site, op, x, moved, few=attempt > 1)
            try:
                settle(x.dtype, check(call), exactness, (x.facts,))
            except RejectedDraft:
                continue
            return call
        raise RejectedDraft(f"no axes keep {op} within the limits of {x.dtype}")

    def bounds(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
        return (check(call),)

    def defined(call: Call) -> bool:
        n = _count(call)
        return n is not None and (n > 0 or empty) and (domain is None or call.facts().inside(*domain))

    return OpSpec(
        op, dtypes, sample, bounds, exactness, "reduction", defined, shapes=rules.reduced, fusion="reduction",
        well_formed=listed_axes, structural={"shape": (1,)},
        special=ORDER if exactness is Exactness.MOVES else SUMS,
    )  # fmt: skip


def _draw(site: Site, op: str, x: Operand, moved: int, *, few: bool) -> Call:
    """Draw axes and their form. `few`: at most one axis, since more were too many."""
    rng = site.rng
    late = site.opset >= moved
    options: dict[str, int | list[int] | None] = {"keepdims": rng.choice((None, None, 0, 0, 1))}
    noop = rng.choice((None, None, None, 0, 1)) if late else None
    if x.rank == 0 or (not few and rng.random() < 0.2):
        written = rng.random() < 0.3 and late
        inputs = (x, vector(site, ())) if written else (x,)
        return Call(op, inputs, attributes({**options, "noop_with_empty_axes": noop}))
    chosen = [draw_axis(rng, x.rank)] if few or rng.random() < 0.4 else draw_axes(rng, x.rank)
    axes = [signed(rng, axis, x.rank) for axis in chosen]
    if late:
        return Call(op, (x, vector(site, axes)), attributes({**options, "noop_with_empty_axes": noop}))
    return Call(op, (x,), attributes({**options, "axes": axes}))


def _cum_sum(site: Site) -> Call:
    x = site.operand(ranks=(1, site.limits.max_rank))
    rng = site.rng
    axis = signed(rng, draw_axis(rng, x.rank), x.rank)
    options = {"exclusive": rng.choice((None, 0, 1)), "reverse": rng.choice((None, 0, 1))}
    return Call("CumSum", (x, scalar(site, axis, rng.choice(INDEX_TYPES))), attributes(options))


def _cum_sum_bounds(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    x, axis = call.operand(0), numbers(call, 1)
    n = max(x.shape) if axis is None else x.shape[axis[0]]
    low, high = min(x.facts.lo, n * x.facts.lo), max(x.facts.hi, n * x.facts.hi)
    found = Bounds(low, high, x.facts.integral, n * x.facts.magnitude)
    return (accumulated(with_zero(found) if call.integer("exclusive") else found, n, x.dtype),)


def _cum_sum_holds(call: Call) -> bool:
    axis, rank = numbers(call, 1), call.operand(0).rank
    return axis is not None and -rank <= axis[0] < rank


_MOVES, _INTEGER = Exactness.MOVES, Exactness.INTEGER
_ROUNDS, _TRANSCENDENTAL = Exactness.ROUNDS, Exactness.TRANSCENDENTAL


def _page_cum_sum(call: Call) -> bool:
    axis, rank = numbers_of(call, 1), call.operand(0).rank
    return call.operand(1).rank == 0 and (axis is None or -rank <= axis[0] < rank)


SPECS = (
    replace(reduction("ReduceSum", _sum, _INTEGER, empty=True, moved=13), traits=("shape-arithmetic",)),
    reduction("ReduceMean", _mean, _ROUNDS, dtypes=FLOATS),
    replace(reduction("ReduceMax", _extremum, _MOVES, dtypes=PLAIN), traits=("shape-arithmetic",)),
    replace(reduction("ReduceMin", _extremum, _MOVES, dtypes=PLAIN), traits=("shape-arithmetic",)),
    replace(reduction("ReduceProd", _product, _INTEGER, prefers=(-2, 2), empty=True), traits=("shape-arithmetic",)),
    reduction("ReduceL1", _l1, _INTEGER, empty=True),
    reduction("ReduceL2", _l2, _ROUNDS, dtypes=FLOATS, empty=True),
    reduction("ReduceLogSum", _log_sum, _TRANSCENDENTAL, dtypes=FLOATS, domain=_LOG_DOMAIN),
    reduction("ReduceLogSumExp", _log_sum_exp, _TRANSCENDENTAL, dtypes=FLOATS, domain=_EXP_DOMAIN),
    reduction("ReduceSumSquare", _sum_square, _INTEGER, empty=True),
    OpSpec(
        "CumSum", NUMBERS, _cum_sum, _cum_sum_bounds, _INTEGER, "reduction", _cum_sum_holds, since=11,
        shapes=rules.like_first, well_formed=_page_cum_sum, structural={"shape": (1,)},
    ),
)  # fmt: skip
