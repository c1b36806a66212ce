"""Unary mathematical functions: one line for each operator.

Sources: the operator pages of the ONNX documentation. Domains keep an open margin at their edges, because a value
one ulp outside (arcus functions at 1) is NaN.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from miscompile.base.dtypes import FLOATS, NUMBERS, SIGNED
from miscompile.graph.model import TensorType
from miscompile.ops.facts import Bounds, Exactness, Facts
from miscompile.ops.spec import Call, OpSpec, Site, SpecialValues
from miscompile.ops.special import ARGUMENTS, EXPONENTIAL, FUNCTION, IEEE, ROUNDED, SQUARES, UNIT, WHOLE, around

UnaryInterval = Callable[[Facts], Bounds]
_MOVES, _INDEX = Exactness.MOVES, Exactness.INDEX


def monotone(function: Callable[[float], float], *, integral: bool = False) -> UnaryInterval:
    """Bounds of an increasing function."""
    return lambda x: Bounds(function(x.lo), function(x.hi), integral)


def within(lo: float, hi: float) -> UnaryInterval:
    """Bounds of a function with a fixed range."""
    return lambda _: Bounds(lo, hi)


def unary(
    op: str,
    interval: UnaryInterval,
    *,
    dtypes: tuple[str, ...] = FLOATS,
    domain: tuple[float, float] | None = None,
    exactness: Exactness = Exactness.TRANSCENDENTAL,
    since: int = 13,
    approximated: bool = False,
    special: SpecialValues = FUNCTION,
) -> OpSpec:
    """Spec of an elementwise function of one operand without attributes, defined on `domain` (None: everywhere)."""

    def sample(site: Site) -> Call:
        return Call(op, (site.operand(within=domain),))

    def bounds(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
        return (interval(call.facts()),)

    def defined(call: Call) -> bool:
        return domain is None or call.facts().inside(*domain)

    return OpSpec(
        op,
        dtypes,
        sample,
        bounds,
        exactness,
        "math",
        defined,
        since,
        shapes="broadcast",
        approximated=approximated,
        fusion="elementwise",
        special=special,
    )


def _absolute(x: Facts) -> Bounds:
    low = 0.0 if x.lo <= 0 <= x.hi else min(abs(x.lo), abs(x.hi))
    return Bounds(low, x.magnitude, x.integral)


def _cosh(x: Facts) -> Bounds:
    low = 1.0 if x.lo <= 0 <= x.hi else math.cosh(min(abs(x.lo), abs(x.hi)))
    return Bounds(low, math.cosh(x.magnitude))


_OVERFLOWS = SpecialValues(frozenset({"overflow"}))
"""The least signed integer has no negative."""

_SIGN = SpecialValues(frozenset({"nan", "zero"}))
"""The page of Sign compares with zero, and NaN is neither above nor below nor equal."""

SPECS = (
    replace(
        unary("Abs", _absolute, dtypes=NUMBERS, exactness=_MOVES, special=_OVERFLOWS), traits=("shape-arithmetic",)
    ),
    replace(
        unary(
            "Neg", lambda x: Bounds(-x.hi, -x.lo, x.integral), dtypes=FLOATS + SIGNED, exactness=_MOVES,
            special=_OVERFLOWS,
        ),
        traits=("shape-arithmetic",),
    ),
    unary("Exp", monotone(math.exp), domain=(-16, 10), special=around(ROUNDED, EXPONENTIAL)),
    unary("Log", monotone(math.log), domain=(1e-3, math.inf), special=around(FUNCTION, UNIT)),
    unary(
        "Sqrt", monotone(math.sqrt), domain=(0, math.inf), exactness=Exactness.ROUNDS, special=around(IEEE, SQUARES)
    ),
    unary(
        "Reciprocal", lambda x: Bounds(1 / x.hi, 1 / x.lo), domain=(1e-2, math.inf), exactness=Exactness.ROUNDS,
        special=around(ROUNDED, ARGUMENTS),
    ),
    unary("Sin", within(-1, 1), domain=(-1e3, 1e3), since=7, approximated=True),
    unary("Cos", within(-1, 1), domain=(-1e3, 1e3), since=7, approximated=True),
    unary("Tan", monotone(math.tan), domain=(-1.2, 1.2), since=7),
    unary("Asin", monotone(math.asin), domain=(-0.99, 0.99), since=7, special=around(FUNCTION, UNIT)),
    unary(
        "Acos", lambda x: Bounds(math.acos(x.hi), math.acos(x.lo)), domain=(-0.99, 0.99), since=7,
        special=around(FUNCTION, UNIT),
    ),
    unary("Atan", monotone(math.atan), since=7),
    unary(
        "Sinh", monotone(math.sinh), domain=(-6, 6), since=9, approximated=True, special=around(FUNCTION, EXPONENTIAL)
    ),
    unary("Cosh", _cosh, domain=(-6, 6), since=9, special=around(FUNCTION, EXPONENTIAL)),
    unary("Asinh", monotone(math.asinh), since=9, approximated=True, special=around(FUNCTION, SQUARES)),
    unary("Acosh", monotone(math.acosh), domain=(1.01, math.inf), since=9, special=around(FUNCTION, UNIT)),
    unary(
        "Atanh", monotone(math.atanh), domain=(-0.98, 0.98), since=9, approximated=True, special=around(FUNCTION, UNIT)
    ),
    unary("Tanh", monotone(math.tanh), approximated=True, special=around(FUNCTION, EXPONENTIAL)),
    unary("Erf", monotone(math.erf), approximated=True),
    unary("Floor", monotone(math.floor, integral=True), exactness=_INDEX, special=around(FUNCTION, WHOLE)),
    unary("Ceil", monotone(math.ceil, integral=True), exactness=_INDEX, special=around(FUNCTION, WHOLE)),
    unary("Round", monotone(round, integral=True), exactness=_INDEX, since=11, special=around(FUNCTION, WHOLE)),
    unary("Sign", lambda _: Bounds(-1, 1, integral=True), dtypes=NUMBERS, exactness=_INDEX, special=_SIGN),
)  # fmt: skip
