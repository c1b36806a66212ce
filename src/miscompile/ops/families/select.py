"""Operators that select, copy or convert elements: Where, Identity, Dropout, Cast, CastLike.

Sources: the operator pages of the ONNX documentation. A float outside the target's range has no defined integer;
an integer outside the range of a narrower integer type loses its higher bits, by definition (Cast, since 13).
"""

import numpy as np

from miscompile.base.dtypes import (
    BY_CODE,
    DTYPES,
    FLOATS,
    NUMBERS,
    PLAIN,
    SMALL_FLOATS,
    SMALL_INTEGERS,
    SMALL_SINCE,
    is_float,
    is_integer,
)
from miscompile.base.errors import RejectedDraft
from miscompile.graph.attributes import attributes
from miscompile.graph.model import Node, TensorType
from miscompile.ops.elementwise import of_facts, reach
from miscompile.ops.facts import Bounds, Exactness, Facts, Span
from miscompile.ops.page_rules import scalars
from miscompile.ops.spec import Call, Operand, OpSpec, RunOperands, Site
from miscompile.ops.special import CONVERSION, IEEE, LIMITS, around

_FAMILY = "select"
_SATURATING = frozenset(SMALL_FLOATS) - {"float4e2m1"}
"""Types to which the attribute `saturate` applies."""
_USUAL = (*NUMBERS, "bool")
_STORED = 0.25
"""Probability that a conversion goes to a type for storage, where the opset has some."""
_WRAPPED = 0.3
"""Probability that a conversion to a narrower integer type whose wraparound is defined gets elements out of range."""


def _sample_where(site: Site) -> Call:
    """Draw condition and two operands, in any order, so that each of the three may be the small one."""
    order = [0, 1, 2]
    site.rng.shuffle(order)
    found = {order[0]: site.operand(None if order[0] else "bool")}
    for place in order[1:]:
        shapes = (operand.shape for operand in found.values())
        found[place] = site.partner(*shapes, dtype=None if place else "bool")
    return Call("Where", (found[0], found[1], found[2]))


def _where_bounds(_: Facts, x: Facts, y: Facts) -> Bounds:
    return Bounds(min(x.lo, y.lo), max(x.hi, y.hi), x.integral and y.integral)


def _sample_identity(site: Site) -> Call:
    return Call("Identity", (site.operand(),))


def _same(x: Facts) -> Bounds:
    return Bounds(x.lo, x.hi, x.integral)


def _sample_dropout(site: Site) -> Call:
    """Draw an inference-mode Dropout (no `training_mode`): its output is its input, its mask all true."""
    rng = site.rng
    inputs = [site.operand()]
    if rng.random() < 0.6:
        ratio = rng.choice(("float32", "float16", "float64"))
        inputs.append(site.known(np.asarray(rng.choice((0.0, 0.25, 0.5, 0.9)), ratio)))
    seed = rng.choice((None, None, 0, 7))
    return Call("Dropout", tuple(inputs), attributes({"seed": seed}), outputs=rng.choice((1, 2)))


def _dropout_bounds(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    return (_same(call.facts()), Bounds(1, 1, integral=True))[: call.outputs]


def convertible(source: str, target: str, *, wrap: bool = False) -> Span | None:
    """Return the range of `source` elements whose conversion to `target` is defined and stays within the limits.

    None when every element converts. With `wrap`, integers out of the range of a narrower integer type count as
    converting, where the result's type may run over its whole range.
    """
    if "bool" in (source, target) or source == target:
        return None
    high = reach(target)
    low = 0.0 if DTYPES[target].kind == "uint" else max(-high, DTYPES[target].low)
    if is_integer(source) and is_integer(target):
        if wrap and target not in ("int32", "int64"):
            return None
        return None if low <= DTYPES[source].low and DTYPES[source].high <= high else (low, high)
    return (low, high)


def _operand_span(site: Site, target: str, saturate: int | None) -> Span | None:
    """Return the admitted interval of the operand. Any float converts to 8-bit floats with (default) saturation.

    Without saturation a float out of range becomes NaN or an infinity.
    """
    if target in _SATURATING and is_float(site.dtype) and saturate != 0:
        return None
    return convertible(site.dtype, target, wrap=site.rng.random() < _WRAPPED)


def _draw_target(site: Site) -> tuple[str, int | None]:
    """Draw the type to convert to, and the attribute `saturate` where it applies."""
    rng, stored = site.rng, [dtype for dtype, since in SMALL_SINCE.items() if site.opset >= since]
    target = rng.choice(stored) if stored and rng.random() < _STORED else rng.choice(_USUAL)
    return target, rng.choice((None, None, 0, 1)) if target in _SATURATING else None


def _source(site: Site, target: str, saturate: int | None) -> Operand:
    """Return an operand that converts to `target`. Raises RejectedDraft for fractions that would become few bits."""
    x = site.operand(within=_operand_span(site, target, saturate))
    if target in SMALL_INTEGERS and is_float(site.dtype) and not x.facts.integral:
        raise RejectedDraft("a fraction would become an integer of fewer than eight bits")
    return x


def _sample_cast(site: Site) -> Call:
    target, saturate = _draw_target(site)
    x = _source(site, target, saturate)
    return Call("Cast", (x,), attributes({"saturate": saturate, "to": DTYPES[target].code}))


def _sample_cast_like(site: Site) -> Call:
    target, saturate = _draw_target(site)
    operands = _source(site, target, saturate), site.operand(target)
    return Call("CastLike", operands, attributes({"saturate": saturate}))


def _cast_bounds(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    """Bounds of a conversion. Out-of-range integers give the target's whole range, by way of wraparound."""
    x, target = call.facts(), DTYPES[types[0].dtype]
    if target.kind == "bool":
        return (Bounds(0, 1, integral=True),)
    if target.name in _SATURATING:
        return (Bounds(max(x.lo, target.low), min(x.hi, target.high), x.integral),)
    if target.kind == "float":
        return (Bounds(x.lo, x.hi, x.integral),)
    return (Bounds(int(x.lo), int(x.hi), integral=True),)


def _cast_defined(call: Call) -> bool:
    source = call.operand(0)
    target = BY_CODE[call.integer("to")].name
    return _in_range(source.dtype, target, source.facts, saturates=call.integer("saturate", 1) == 1)


def _cast_like_defined(call: Call) -> bool:
    source = call.operand(0)
    return _in_range(source.dtype, call.operand(1).dtype, source.facts, saturates=call.integer("saturate", 1) == 1)


def _in_range(source: str, target: str, facts: Facts, *, saturates: bool) -> bool:
    """Guard of conversions: floats must lie in the target's range, and never be negative for unsigned targets.

    For small floats that do not saturate so must integers. Fractions must not become integers of fewer than eight bits:
    ONNX Runtime rounds them, and truncates them for all other types.
    """
    if target in _SATURATING and not (saturates and is_float(source)):
        return facts.inside(DTYPES[target].low, DTYPES[target].high)
    if not is_float(source) or target == "bool" or target in _SATURATING:
        return True
    whole = facts.integral or target not in SMALL_INTEGERS
    return whole and facts.inside(DTYPES[target].low, DTYPES[target].high)


def _page_dropout(call: Call) -> bool:
    """The ratio is a scalar in [0, 1), and the call is in inference mode."""
    if not scalars(1, 2)(call) or call.has(2):
        return False
    return not call.has(1) or call.facts(1).inside(0.0, 0.999)


def _converts(node: Node, value: RunOperands) -> bool:
    """A float outside the integer type's range has no defined conversion."""
    x, to = value(0), node.attributes.get("to")
    if x is None or to is None or to.kind != "int" or DTYPES[x.dtype].kind != "float":
        return True
    goal = BY_CODE[int(to.value)]
    if goal.kind not in ("int", "uint"):
        return True
    numbers = x.numbers().astype(np.float64)
    return bool(((numbers > goal.low - 1) & (numbers < goal.high + 1)).all())


SPECS = (
    OpSpec(
        "Where", PLAIN, _sample_where, of_facts(_where_bounds), Exactness.MOVES, _FAMILY, main=1, shapes="broadcast",
        special=IEEE, fusion="broadcast", traits=("shape-arithmetic",),
    ),
    OpSpec(
        "Identity", PLAIN, _sample_identity, of_facts(_same), Exactness.MOVES, _FAMILY, shapes="first",
        special=IEEE, fusion="elementwise", traits=("shape-arithmetic",),
    ),
    OpSpec(
        "Dropout", FLOATS, _sample_dropout, _dropout_bounds, Exactness.MOVES, _FAMILY, shapes="first",
        well_formed=_page_dropout, structural={"control": (1, 2)}, fusion="elementwise", traits=("float32-numbers",),
        special=IEEE,
    ),
    OpSpec(
        "Cast", PLAIN, _sample_cast, _cast_bounds, Exactness.INTEGER, _FAMILY, _cast_defined, shapes="first",
        defined_on=_converts, fusion="elementwise", traits=("shape-arithmetic",), probes=40,
        special=around(CONVERSION, LIMITS),
    ),
    OpSpec(
        "CastLike", PLAIN, _sample_cast_like, _cast_bounds, Exactness.INTEGER, _FAMILY, _cast_like_defined, since=15,
        shapes="first", fusion="elementwise", probes=40,
    ),
)  # fmt: skip
