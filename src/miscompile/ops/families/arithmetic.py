"""Arithmetic of two operands, and the variadic Max, Min, Sum and Mean.

Sources: the operator pages of the ONNX documentation. Integer division truncates; division by zero and INT_MIN / -1 are
undefined behaviour; the range of the denominator excludes both.
"""

import math
from dataclasses import replace

import numpy as np

from miscompile.base.dtypes import DTYPES, FLOATS, INTEGERS, NUMBERS, SIGNED, is_float
from miscompile.core.tensor import Tensor
from miscompile.graph.attributes import attributes
from miscompile.graph.model import Node, TensorType
from miscompile.ops.elementwise import binary, corners, hull, of_facts, pair, reach, several
from miscompile.ops.facts import Bounds, Exactness, Facts, Span
from miscompile.ops.page_rules import broadcasts_to
from miscompile.ops.spec import BoundsOf, Call, Operand, OpSpec, RunOperands, Site, SpecialValues
from miscompile.ops.special import ARGUMENTS, ORDER, SQUARES, STEPS, SUMS, around

_FAMILY = "arithmetic"
_SMALLEST = 0.5
"""Smallest magnitude of a float denominator: keeps quotients near the size of their numerators."""
_KNOWN = 0.1
"""Share of divisions of signed integers whose divisor is a constant with elements of both signs."""


def _add(a: Facts, b: Facts) -> Bounds:
    return Bounds(a.lo + b.lo, a.hi + b.hi, a.integral and b.integral)


def _subtract(a: Facts, b: Facts) -> Bounds:
    return Bounds(a.lo - b.hi, a.hi - b.lo, a.integral and b.integral)


def _multiply(a: Facts, b: Facts) -> Bounds:
    return hull(corners(lambda x, y: x * y, a, b), integral=a.integral and b.integral)


def _product_bounds(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    """Bounds of a product; a value times itself is not negative."""
    a, b = call.facts(0), call.facts(1)
    if call.operand(0).name != call.operand(1).name:
        return (_multiply(a, b),)
    least = 0.0 if a.lo <= 0 <= a.hi else min(abs(a.lo), abs(a.hi)) ** 2
    return (Bounds(least, a.magnitude**2, a.integral),)


def truncated(a: float, b: float) -> int:
    """Return the quotient of two integers, rounded toward zero."""
    quotient = abs(int(a)) // abs(int(b))
    return -quotient if (a < 0) != (b < 0) else quotient


def _denominator(site: Site) -> Span:
    """Draw a range without zero, and without -1 for signed integers, whose lowest value has no negative."""
    high = reach(site.dtype)
    if is_float(site.dtype):
        return (_SMALLEST, high) if site.rng.random() < 0.7 else (-high, -_SMALLEST)
    return (-high, -2) if site.dtype in SIGNED and site.rng.random() < 0.3 else (1, high)


def _divisible(call: Call) -> bool:
    """Guard of division: the denominator is never zero, and never -1 where the numerator can be the lowest value.

    Integers whose elements are known may have both signs.
    """
    numerator, denominator, known = call.operand(0), call.facts(1), call.operand(1).value
    lowest = DTYPES[numerator.dtype].low
    if known is not None and known.size and not is_float(numerator.dtype):
        return bool((known != 0).all()) and not (numerator.facts.lo <= lowest and bool((known == -1).any()))
    if denominator.lo <= 0 <= denominator.hi:
        return False
    return is_float(numerator.dtype) or not (denominator.lo <= -1 <= denominator.hi and numerator.facts.lo <= lowest)


def _known_divisor(site: Site) -> tuple[Operand, Operand]:
    """Draw a dividend, and a constant divisor of both signs: powers of two, numbers beside them, and the lowest one."""
    dividend, info = site.operand(), DTYPES[site.dtype]
    powers = [sign * 2**bit for bit in range(1, info.bits - 1) for sign in (1, -1)]
    pool = [1, int(info.low), *(power + step for power in powers for step in (-1, 0, 0, 1))]
    shape = dividend.shape[-1:] if 0 not in dividend.shape[-1:] else ()
    chosen = [site.rng.choice(pool) for _ in range(math.prod(shape))]
    elements = [2 if one == -1 else one for one in chosen]
    return dividend, site.known(np.array(elements, info.storage).reshape(shape), site.dtype)


def _sample_div(site: Site) -> Call:
    if site.dtype in SIGNED and site.rng.random() < _KNOWN:
        return Call("Div", _known_divisor(site))
    span = _denominator(site)
    if site.rng.random() < 0.06:
        operand = site.operand(within=span)
        return Call("Div", (operand, operand))
    return Call("Div", pair(site, None, span, twice=False))


def _div_bounds(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    """Bounds of a quotient. Never integral for floats, so that class INTEGER means a rounded result."""
    if is_float(types[0].dtype):
        return (hull(corners(lambda a, b: a / b, call.facts(0), call.facts(1))),)
    a, b = call.facts(0), call.facts(1)
    if b.lo < 0 < b.hi:  # known elements of both signs
        return (Bounds(-a.magnitude, a.magnitude, True),)
    return (hull(corners(truncated, a, b), integral=True),)


def _sample_mod(site: Site) -> Call:
    if not is_float(site.dtype):
        fmod = site.rng.choice((None, 0, 1))
        if site.dtype in SIGNED and site.rng.random() < _KNOWN:
            return Call("Mod", _known_divisor(site), attributes({"fmod": fmod}))
        return Call("Mod", pair(site, None, _denominator(site), twice=False), attributes({"fmod": fmod}))
    # Within one of these windows the quotient stays between two integers, so that noise in an operand, or a remainder
    # computed as a - b * trunc(a / b), cannot jump by a whole denominator.
    lo, hi = site.rng.choice(((-3.5, 3.5), (5.5, 7.5), (-7.5, -5.5), (10.5, 11.5), (-11.5, -10.5)))
    denominator = site.rng.choice(((4.0, 5.0), (-5.0, -4.0)))
    return Call("Mod", pair(site, (lo, hi), denominator, twice=False), attributes({"fmod": 1}))


def _mod_bounds(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    a, b = call.facts(0), call.facts(1)
    whole = a.integral and b.integral
    largest = b.magnitude - (0 if is_float(types[0].dtype) else 1)
    if call.integer("fmod"):
        most = min(largest, a.magnitude)
        return (Bounds(-most if a.lo < 0 else 0, most if a.hi > 0 else 0, whole),)
    return (Bounds(0 if b.lo > 0 else -largest, largest if b.hi > 0 else 0, whole),)


def _mod_defined(call: Call) -> bool:
    floats = is_float(call.operand(0).dtype)
    return _divisible(call) and not (floats and not call.integer("fmod"))


def _sample_pow(site: Site) -> Call:
    """Draw base and exponent, whose types may differ.

    An integer base has an integer exponent, because a float exponent makes the truncated result discontinuous.
    """
    rng = site.rng
    if not is_float(site.dtype):
        exponent = rng.choice((site.dtype, *INTEGERS))
        return Call("Pow", pair(site, (-100, 100), (0, 4), dtypes=(site.dtype, exponent), twice=False))
    floats = FLOATS if site.opset >= 15 else tuple(name for name in FLOATS if name != "bfloat16")
    exponent = rng.choice((*((site.dtype,) * 4 if site.dtype in floats else ()), *floats, *INTEGERS))
    if is_float(exponent):
        return Call("Pow", pair(site, (0.25, 4), (-2, 3), dtypes=(site.dtype, exponent), twice=False))
    base = rng.choice(((0.25, 4.0), (-4.0, 4.0), (-4.0, -0.25)))
    powers = (0, 4) if base == (-4.0, 4.0) or exponent not in SIGNED else (-2, 4)
    return Call("Pow", pair(site, base, powers, dtypes=(site.dtype, exponent), twice=False))


def _pow_bounds(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    """Extremes are at corners of |base| and exponent; a negative base may give either sign, except to an even power."""
    base, exponent = call.facts(0), call.facts(1)
    even = _whole_exponents(call.operand(1), multiple=2)
    smallest = 0.0 if base.lo <= 0 <= base.hi else min(abs(base.lo), abs(base.hi))
    sizes = corners(math.pow, Facts(smallest, base.magnitude), exponent)
    if smallest == 0 and exponent.lo <= 0 <= exponent.hi:
        sizes.append(1.0)
    return (hull([*sizes, *(-size for size in sizes)] if base.lo < 0 and not even else sizes),)


def _whole_exponents(exponent: Operand, multiple: int = 1) -> bool:
    """Tell whether all exponents are known and multiples of `multiple`, so that a base may be negative."""
    if exponent.value is None:
        return False
    numbers = Tensor(exponent.dtype, exponent.value).numbers()
    return bool((numbers % multiple == 0).all())


def _pow_defined(call: Call) -> bool:
    base, exponent = call.operand(0), call.operand(1)
    if not is_float(base.dtype):
        return exponent.facts.lo >= 0 and not is_float(exponent.dtype)
    if base.facts.lo > 0:
        return True
    nonzero = base.facts.hi < 0 or exponent.facts.lo >= 0
    return nonzero and (not is_float(exponent.dtype) or _whole_exponents(exponent))


def _sample_prelu(site: Site) -> Call:
    """Draw a slope whose shape broadcasts to the data's: a tail of it, some sizes replaced by one."""
    data = site.operand()
    tail = data.shape[site.rng.randrange(data.rank + 1) :]
    ones = site.rng.random()
    return Call("PRelu", (data, site.weight(tuple(1 if site.rng.random() < ones else size for size in tail))))


def _prelu_bounds(x: Facts, slope: Facts) -> Bounds:
    below = Facts(min(x.lo, 0), min(x.hi, 0))
    points = [*corners(lambda a, b: a * b, below, slope), max(x.lo, 0), max(x.hi, 0)]
    # Many kernels multiply everywhere and select afterwards, so the unselected product must not overflow either.
    return hull(points, integral=x.integral and slope.integral, partial=x.magnitude * slope.magnitude)


def _fold_bounds(call: Call, types: tuple[TensorType, ...], divisor: int) -> tuple[Bounds, ...]:
    """Bounds of a sum of all operands over `divisor`.

    Partial sums may be larger than the result, and each is rounded, so the slack is measured by them.
    """
    facts = [call.facts(index) for index in range(len(call.inputs))]
    lo, hi = math.fsum(x.lo for x in facts) / divisor, math.fsum(x.hi for x in facts) / divisor
    partial = math.fsum(x.magnitude for x in facts)
    whole = divisor == 1 and all(x.integral for x in facts)
    info = DTYPES[types[0].dtype]
    slack = 0.0 if whole and partial <= 2.0**info.digits else 2 * len(facts) * info.eps * partial
    return (Bounds(lo - slack, hi + slack, whole and not slack, partial),)


def _variadic(op: str, dtypes: tuple[str, ...], bounds: BoundsOf, exactness: Exactness) -> OpSpec:
    """Spec of an operator of one to four operands that broadcast together."""

    def sample(site: Site) -> Call:
        return Call(op, several(site))

    return OpSpec(op, dtypes, sample, bounds, exactness, _FAMILY, shapes="broadcast", fusion="broadcast")


def _maximum(*facts: Facts) -> Bounds:
    return Bounds(max(x.lo for x in facts), max(x.hi for x in facts), all(x.integral for x in facts))


def _minimum(*facts: Facts) -> Bounds:
    return Bounds(min(x.lo for x in facts), min(x.hi for x in facts), all(x.integral for x in facts))


def _sum_bounds(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    return _fold_bounds(call, types, 1)


def _mean_bounds(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    return _fold_bounds(call, types, len(call.inputs))


def _page_prelu(call: Call) -> bool:
    return broadcasts_to(call.operand(1).shape, call.operand(0).shape)


def _divides(node: Node, value: RunOperands) -> bool:
    """Integers must not be divided by zero, nor the smallest one by -1."""
    dividend, divisor = value(0), value(1)
    if divisor is None or divisor.array.dtype.kind not in "iu" or DTYPES[divisor.dtype].kind == "float":
        return True
    if (divisor.array == 0).any():
        return False
    if dividend is None or divisor.array.dtype.kind != "i" or not (divisor.array == -1).any():
        return True
    return not (dividend.array == DTYPES[dividend.dtype].low).any()


_SUM = SpecialValues(frozenset({"overflow"}), fused="sum")
_PRODUCT = SpecialValues(frozenset({"overflow"}), fused="product")

SPECS = (
    replace(
        binary("Add", NUMBERS, _add, Exactness.INTEGER, _FAMILY), special=_SUM,
        traits=("commutative", "shape-arithmetic"),
    ),
    replace(binary("Sub", NUMBERS, _subtract, Exactness.INTEGER, _FAMILY), special=_SUM, traits=("shape-arithmetic",)),
    replace(
        binary("Mul", NUMBERS, _multiply, Exactness.INTEGER, _FAMILY), bounds=_product_bounds,
        special=around(_PRODUCT, SQUARES), traits=("commutative", "shape-arithmetic"),
    ),
    OpSpec(
        "Div", NUMBERS, _sample_div, _div_bounds, Exactness.INTEGER, _FAMILY, _divisible, shapes="broadcast",
        defined_on=_divides, fusion="broadcast", traits=("shape-arithmetic",),
        special=around(SpecialValues(frozenset({"overflow"})), ARGUMENTS),
    ),
    OpSpec(
        "Mod", NUMBERS, _sample_mod, _mod_bounds, Exactness.INDEX, _FAMILY, _mod_defined, shapes="broadcast",
        defined_on=_divides, fusion="broadcast", traits=("shape-arithmetic",),
    ),
    OpSpec(
        "Pow", (*FLOATS, "int32", "int64"), _sample_pow, _pow_bounds, Exactness.INTEGER, _FAMILY, _pow_defined,
        shapes="broadcast", structural={"domain": (1,)}, fusion="broadcast",
        special=around(STEPS, SQUARES),
    ),
    OpSpec(
        "PRelu", NUMBERS, _sample_prelu, of_facts(_prelu_bounds), Exactness.INTEGER, _FAMILY, shapes="first",
        well_formed=_page_prelu, fusion="broadcast", special=STEPS,
    ),
    replace(
        _variadic("Max", NUMBERS, of_facts(_maximum), Exactness.MOVES), special=ORDER,
        traits=("commutative", "shape-arithmetic"),
    ),
    replace(
        _variadic("Min", NUMBERS, of_facts(_minimum), Exactness.MOVES), special=ORDER,
        traits=("commutative", "shape-arithmetic"),
    ),
    replace(_variadic("Sum", FLOATS, _sum_bounds, Exactness.INTEGER), special=SUMS, traits=("commutative",)),
    replace(_variadic("Mean", FLOATS, _mean_bounds, Exactness.ROUNDS), special=SUMS, traits=("commutative",)),
)  # fmt: skip
