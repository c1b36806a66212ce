"""Comparisons, logic, bit operations, and tests for NaN and infinity.

Sources: the operator pages of the ONNX documentation. A shift by the type's width or more is undefined behaviour and
never drawn.
"""

import math
from dataclasses import replace

from miscompile.base.dtypes import DTYPES, FLOATS, INTEGERS, NUMBERS, PLAIN
from miscompile.graph.attributes import attributes
from miscompile.graph.model import Node, TensorType
from miscompile.ops.elementwise import binary, corners, hull, of_facts, pair
from miscompile.ops.facts import Bounds, Exactness, Facts
from miscompile.ops.spec import BoundsOf, Call, OpSpec, RunOperands, Sampler, Site
from miscompile.ops.special import IEEE

_FAMILY = "logic"
_BOOL = ("bool",)
_WIDE_SHIFT = 3
"""Largest shift of signed types whose overflow is undefined: it keeps small values small."""


def _truth(*_: Facts) -> Bounds:
    return Bounds(0, 1, integral=True)


def _compare(op: str, dtypes: tuple[str, ...] = NUMBERS, since: int = 13) -> OpSpec:
    return replace(binary(op, dtypes, _truth, Exactness.INDEX, _FAMILY, since), special=IEEE)


def _unary(op: str, dtypes: tuple[str, ...], bounds: BoundsOf, exactness: Exactness, since: int = 13) -> OpSpec:
    return OpSpec(
        op, dtypes, _plain(op), bounds, exactness, _FAMILY, since=since, shapes="broadcast", fusion="elementwise",
        special=IEEE,
    )  # fmt: skip


def _plain(op: str) -> Sampler:
    return lambda site: Call(op, (site.operand(),))


def _ones(*facts: Facts) -> int:
    """Return the number with as many one bits as the widest element of `facts` needs."""
    return int((1 << max(int(end).bit_length() for x in facts for end in (x.lo, x.hi))) - 1)


def _bitwise(a: Facts, b: Facts) -> Bounds:
    """Bounds of any bit operation: the sign and the width of the wider operand."""
    ones = _ones(a, b)
    return Bounds(-ones - 1 if a.lo < 0 or b.lo < 0 else 0, ones, integral=True)


def _bitwise_and(a: Facts, b: Facts) -> Bounds:
    if a.lo >= 0 and b.lo >= 0:
        return Bounds(0, min(a.hi, b.hi), integral=True)
    return _bitwise(a, b)


def _bitwise_not(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    """Bounds of ~x: -x - 1 for signed types, the largest value - x for unsigned ones."""
    x, info = call.facts(), DTYPES[types[0].dtype]
    top = -1 if info.kind == "int" else int(info.high)
    return (Bounds(top - int(x.hi), top - int(x.lo), integral=True),)


def _widest(dtype: str) -> int:
    """Return the largest shift that is drawn for `dtype`."""
    return _WIDE_SHIFT if dtype in ("int32", "int64") else DTYPES[dtype].bits - 1


def _sample_shift(site: Site) -> Call:
    direction = site.rng.choice(("LEFT", "RIGHT"))
    operands = pair(site, None, (0, _widest(site.dtype)), twice=False)
    return Call("BitShift", operands, attributes({"direction": direction}))


def _shift_bounds(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    if call.text("direction") == "LEFT":
        return (hull(corners(lambda a, b: int(a) << int(b), call.facts(0), call.facts(1)), integral=True),)
    return (hull(corners(lambda a, b: int(a) >> int(b), call.facts(0), call.facts(1)), integral=True),)


def _shift_defined(call: Call) -> bool:
    return call.facts(1).inside(0, DTYPES[call.operand(1).dtype].bits - 1)


def _sample_is_inf(site: Site) -> Call:
    flags = {name: site.rng.choice((None, 0, 1)) for name in ("detect_negative", "detect_positive")}
    return Call("IsInf", (site.operand(),), attributes(flags))


def _finite(call: Call) -> bool:
    return math.isfinite(call.facts().magnitude)


def _shifts(node: Node, value: RunOperands) -> bool:
    amount = value(1)
    return amount is None or not (amount.array >= DTYPES[amount.dtype].bits).any()


SPECS = (
    replace(_compare("Equal", PLAIN), traits=("commutative", "shape-arithmetic")),
    replace(_compare("Less"), traits=("shape-arithmetic",)),
    _compare("LessOrEqual", since=16),  # before 16 a function of which inference gives no shape
    replace(_compare("Greater"), traits=("shape-arithmetic",)),
    _compare("GreaterOrEqual", since=16),
    replace(
        binary("And", _BOOL, _truth, Exactness.MOVES, _FAMILY, since=7), special=IEEE,
        traits=("commutative", "shape-arithmetic"),
    ),
    replace(
        binary("Or", _BOOL, _truth, Exactness.MOVES, _FAMILY, since=7), special=IEEE,
        traits=("commutative", "shape-arithmetic"),
    ),
    replace(binary("Xor", _BOOL, _truth, Exactness.MOVES, _FAMILY, since=7), special=IEEE, traits=("commutative",)),
    replace(_unary("Not", _BOOL, of_facts(_truth), Exactness.MOVES, since=1), traits=("shape-arithmetic",)),
    replace(
        binary("BitwiseAnd", INTEGERS, _bitwise_and, Exactness.MOVES, _FAMILY, since=18), special=IEEE,
        traits=("commutative",),
    ),
    replace(
        binary("BitwiseOr", INTEGERS, _bitwise, Exactness.MOVES, _FAMILY, since=18), special=IEEE,
        traits=("commutative",),
    ),
    replace(
        binary("BitwiseXor", INTEGERS, _bitwise, Exactness.MOVES, _FAMILY, since=18), special=IEEE,
        traits=("commutative",),
    ),
    _unary("BitwiseNot", INTEGERS, _bitwise_not, Exactness.MOVES, since=18),
    OpSpec(
        "BitShift", INTEGERS, _sample_shift, _shift_bounds, Exactness.MOVES, _FAMILY, _shift_defined, since=11,
        shapes="broadcast", defined_on=_shifts, fusion="broadcast",
    ),
    _unary("IsNaN", FLOATS, of_facts(_truth), Exactness.INDEX),
    OpSpec(
        "IsInf", FLOATS, _sample_is_inf, of_facts(_truth), Exactness.INDEX, _FAMILY, _finite, since=10,
        shapes="broadcast", fusion="elementwise", special=IEEE,
    ),
)  # fmt: skip
