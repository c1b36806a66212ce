"""Activation functions, with their attributes off the defaults.

Sources: the operator pages of the ONNX documentation. A kernel may compute a function by another formula (Elu as exp(x)
- 1), whose error near zero is absolute. Bounds therefore use a function's range and not its slope. Attributes are
rounded to float32 as ONNX stores them; the thresholds of discontinuous functions are dyadic, so that every element type
holds them exactly.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from miscompile.base.dtypes import FLOATS, NUMBERS, SIGNED, UNSIGNED, is_float
from miscompile.graph.attributes import attributes
from miscompile.graph.model import TensorType
from miscompile.ops.elementwise import hull, narrow, of_facts, piecewise, reach
from miscompile.ops.facts import Bounds, Exactness, Facts, Span
from miscompile.ops.page_rules import scalars
from miscompile.ops.spec import Call, Operand, OpSpec, Site, SpecialValues
from miscompile.ops.special import EXPONENTIAL, FUNCTION, ORDER, STEPS, around

_FAMILY = "activation"
_SELU_ALPHA, _SELU_GAMMA = 1.6732631921768188, 1.0507010221481323
_MARGIN = 1.01
"""Bounds at a smooth function's minimum: one per cent more holds the rounding of every element type."""

_APPROXIMATION = 0.01
"""Largest absolute error of an approximated Sigmoid, with the rounding of every element type."""


def _function(
    op: str,
    bounds: Callable[[Call, Facts], Bounds],
    *,
    exactness: Exactness = Exactness.TRANSCENDENTAL,
    options: Mapping[str, Sequence[float]] | None = None,
    domain: Span | None = None,
    since: int = 13,
    approximated: bool = False,
    special: SpecialValues | None = None,
) -> OpSpec:
    """Spec of a float function of one operand whose float attributes take one of `options`, or their default."""

    def sample(site: Site) -> Call:
        chosen = {
            name: None if site.rng.random() < 0.3 else narrow(site.rng.choice(values))
            for name, values in (options or {}).items()
        }
        return Call(op, (site.operand(within=domain),), attributes(chosen))

    def whole(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
        return (bounds(call, call.facts()),)

    def defined(call: Call) -> bool:
        return domain is None or call.facts().inside(*domain)

    return OpSpec(
        op,
        FLOATS,
        sample,
        whole,
        exactness,
        _FAMILY,
        defined,
        since,
        shapes="broadcast",
        approximated=approximated,
        fusion="elementwise",
        special=special,
    )


def _dips(least: float) -> Callable[[Call, Facts], Bounds]:
    """Bounds of a function that is never above max(x, 0) and never below `least`, which is negative."""
    return lambda _, x: Bounds(least * _MARGIN if x.lo < 0 else 0.0, max(x.hi, 0.0))


def _between(lo: float, hi: float) -> Callable[[Call, Facts], Bounds]:
    return lambda _, x: Bounds(lo, hi)


def _sigmoid(_: Call, x: Facts) -> Bounds:
    lo, hi = (0.5 + 0.5 * math.tanh(end / 2) for end in (x.lo, x.hi))
    return Bounds(max(0, lo - _APPROXIMATION), min(1, hi + _APPROXIMATION))


def _leaky(call: Call, x: Facts) -> Bounds:
    alpha = call.number("alpha", narrow(0.01))
    return hull(piecewise(lambda v: v if v >= 0 else alpha * v, x, (0.0,)))


def _exponential(slope: float, floor: float, x: Facts) -> Bounds:
    """Bounds of slope * x above zero, and of a curve that falls to `floor` below zero."""
    ends = [slope * max(x.lo, 0.0), slope * max(x.hi, 0.0)]
    return hull([*ends, 0.0, floor * _MARGIN] if x.lo < 0 else ends)


def _elu(call: Call, x: Facts) -> Bounds:
    return _exponential(1.0, -call.number("alpha", 1.0), x)


def _selu(call: Call, x: Facts) -> Bounds:
    gamma = call.number("gamma", _SELU_GAMMA)
    return _exponential(gamma, -gamma * call.number("alpha", _SELU_ALPHA), x)


def _thresholded(call: Call, x: Facts) -> Bounds:
    """Elements above alpha are kept, all others become zero."""
    alpha = call.number("alpha", 1.0)
    points = [max(x.lo, alpha), x.hi] if x.hi > alpha else []
    return hull([*points, 0.0] if x.lo <= alpha else points, integral=x.integral)


def _softplus(_: Call, x: Facts) -> Bounds:
    return Bounds(0.0, math.log1p(math.exp(max(x.hi, 0.0))))


def _swish(call: Call, x: Facts) -> Bounds:
    """Bounds of x * sigmoid(alpha * x) for a positive alpha; its minimum is -0.2785 / alpha."""
    return _dips(-0.27847 / call.number("alpha", 1.0))(call, x)


def _sample_gelu(site: Site) -> Call:
    # The tanh form cubes its operand, which must not overflow in float16.
    approximate = site.rng.choice((None, "none", "tanh"))
    operand = site.operand(within=(-30, 30) if approximate == "tanh" else None)
    return Call("Gelu", (operand,), attributes({"approximate": approximate}))


def _gelu_bounds(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    return (_dips(-0.1701)(call, call.facts()),)


def _gelu_defined(call: Call) -> bool:
    return call.text("approximate") != "tanh" or call.facts().inside(-30, 30)


def _relu(x: Facts) -> Bounds:
    return Bounds(max(x.lo, 0), max(x.hi, 0), x.integral)


def _sample_relu(site: Site) -> Call:
    return Call("Relu", (site.operand(),))


def _sample_shrink(site: Site) -> Call:
    """Draw threshold and bias: for integers whole ones that cannot leave the type's range."""
    rng = site.rng
    if is_float(site.dtype):
        lambd, bias = rng.choice((None, 0.0, 0.25, 1.0, 1.5)), rng.choice((None, 0.5, 1.0, 2.0, -1.0))
    else:
        lambd = rng.choice((1.0, 2.0, 3.0))
        bias = rng.choice((None, 0.0, 1.0, lambd))
    return Call("Shrink", (site.operand(),), attributes({"lambd": lambd, "bias": bias}))


def _shrink_bounds(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    x, lambd, bias = call.facts(), call.number("lambd", 0.5), call.number("bias")
    points = [0.0] if x.lo <= lambd and x.hi >= -lambd else []
    if x.lo < -lambd:
        points += [x.lo + bias, min(x.hi, -lambd) + bias]
    if x.hi > lambd:
        points += [max(x.lo, lambd) - bias, x.hi - bias]
    return (hull(points, integral=x.integral and bias.is_integer(), partial=x.magnitude + abs(bias)),)


def _shrink_defined(call: Call) -> bool:
    lambd, bias = call.number("lambd", 0.5), call.number("bias")
    return is_float(call.operand(0).dtype) or (lambd.is_integer() and bias.is_integer() and 0 <= bias <= lambd)


_CROSSED = 0.06
"""Share of the calls of Clip with both limits whose lower one is above the upper one."""


def _sample_clip(site: Site) -> Call:
    """Draw a lower limit below a pivot and an upper limit above it, seldom the reverse, in which the upper one wins."""
    rng = site.rng
    data = site.operand()
    # The pivot is small, because the ranges of freshly drawn values are, and whole, so that every type holds it.
    pivot = rng.choice((0, 1, 2, 3) if site.dtype in UNSIGNED else (-2, -1, 0, 1, 2))
    top = reach(site.dtype)
    form = rng.choice(("both", "both", "min", "max", "none", "omitted"))
    below: tuple[float, float] = (0 if site.dtype in UNSIGNED else -top, pivot)
    above: tuple[float, float] = (pivot, top)
    if form == "both" and rng.random() < _CROSSED:
        below, above = above, below
    low = site.operand(shape=(), within=below) if form in ("both", "min") else None
    high = site.operand(shape=(), within=above) if form in ("both", "max") else None
    inputs: tuple[Operand | None, ...] = (data, low, high)
    return Call("Clip", inputs[: {"omitted": 1, "min": 2}.get(form, 3)])


def _clip_bounds(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    """Clip is monotone in each operand, so its bounds are Clip of the lower and of the upper ends."""
    x = call.facts()
    lo, hi, integral = x.lo, x.hi, x.integral
    if call.has(1):
        low = call.facts(1)
        lo, hi, integral = max(lo, low.lo), max(hi, low.hi), integral and low.integral
    if call.has(2):
        high = call.facts(2)
        lo, hi, integral = min(lo, high.lo), min(hi, high.hi), integral and high.integral
    return (Bounds(lo, hi, integral),)


SPECS = (
    OpSpec(
        "Relu", FLOATS + SIGNED, _sample_relu, of_facts(_relu), Exactness.MOVES, _FAMILY, shapes="broadcast",
        fusion="elementwise", special=ORDER,
    ),
    _function(
        "LeakyRelu", _leaky, exactness=Exactness.ROUNDS, options={"alpha": (0.0, 0.1, 0.25, 1.5, -0.5)}, special=STEPS
    ),
    _function("Elu", _elu, options={"alpha": (0.25, 0.7, 2.0)}, approximated=True),
    _function("Selu", _selu, options={"alpha": (0.5, 1.7), "gamma": (0.5, 1.1, 2.0)}, approximated=True),
    _function("Celu", _elu, options={"alpha": (0.25, 0.7, 2.0)}, approximated=True),
    _function("ThresholdedRelu", _thresholded, exactness=Exactness.INDEX, options={"alpha": (0.0, 0.5, 2.0, -1.5)}),
    _function(
        "HardSigmoid",
        _between(0, 1),
        exactness=Exactness.ROUNDS,
        options={"alpha": (0.1, 0.5, 1.0), "beta": (0.0, 0.3, 1.0)},
        approximated=True,
    ),
    _function("HardSwish", _dips(-0.375), exactness=Exactness.ROUNDS, since=14, approximated=True),
    _function("Sigmoid", _sigmoid, approximated=True, special=around(FUNCTION, EXPONENTIAL)),
    _function("Softplus", _softplus, domain=(-16, 10), approximated=True),
    _function("Softsign", _between(-1, 1), exactness=Exactness.ROUNDS),
    OpSpec(
        "Gelu", FLOATS, _sample_gelu, _gelu_bounds, Exactness.TRANSCENDENTAL, _FAMILY, _gelu_defined, since=20,
        shapes="broadcast", approximated=True, fusion="elementwise",
    ),
    _function("Mish", _dips(-0.30885), domain=(-16, 10), since=18, approximated=True),
    OpSpec(
        "Shrink", NUMBERS, _sample_shrink, _shrink_bounds, Exactness.INTEGER, _FAMILY, _shrink_defined,
        shapes="broadcast", fusion="elementwise",
    ),
    _function("Swish", _swish, options={"alpha": (0.5, 1.7, 2.0)}, since=24, approximated=True),
    OpSpec(
        "Clip", NUMBERS, _sample_clip, _clip_bounds, Exactness.MOVES, _FAMILY, shapes="first",
        well_formed=scalars(1, 2), fusion="elementwise",
    ),
)  # fmt: skip
