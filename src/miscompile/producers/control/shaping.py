"""Results of bodies: values of a wanted type, and values within the interval that must hold on every iteration."""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from miscompile.base.dtypes import DTYPES, is_float, is_integer
from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.attributes import attributes
from miscompile.ops.facts import Facts
from miscompile.ops.shapes import broadcasts
from miscompile.ops.spec import Call, Operand, Shape
from miscompile.ops.values import Style, choose_range
from miscompile.producers.control.body import BodyScope
from miscompile.producers.guards import guard
from miscompile.producers.scope import Scope

_MIXERS = ("Add", "Sub", "Mul", "Max", "Min")
_LOGIC = ("And", "Or", "Xor", "Equal")
_LOOKS = 6


def result_of(body: BodyScope, dtype: str, shape: Shape) -> Operand:
    """Return a result of the body's operators with this type, converted from another result if there is none.

    Raises RejectedDraft when the target supports no conversion.
    """
    made = [body.operands[name] for name in reversed(body.made())]
    found = [operand for operand in made if (operand.dtype, operand.shape) == (dtype, shape)]
    if found:
        return found[min(int(body.rng.random() * len(found)), int(body.rng.random() * len(found)))]
    for operand in _near(body, made, dtype, shape):
        mark = body.mark()
        try:
            return _converted_to(body, operand, dtype, shape)
        except RejectedDraft:
            body.rollback(mark)
    return own_result(body, body.new_input(dtype, shape, choose_range(dtype, body.style)))


def own_result(body: Scope, operand: Operand) -> Operand:
    """Return `operand` behind an Identity, because parameters and captured values must not be outputs of the body."""
    return body.call("Identity", operand)


def distinct(body: BodyScope, results: Sequence[Operand]) -> list[Operand]:
    """Return `results`, with an Identity behind duplicates and behind values that no operator of the body computes."""
    made = set(body.made())
    found: list[Operand] = []
    for result in results:
        known = result.name in made and all(result.name != other.name for other in found)
        found.append(result if known else own_result(body, result))
    return found


def mixed(body: Scope, result: Operand, other: Operand) -> Operand:
    """Return a value with the type of `result` computed from both, so that it depends on `other`.

    Raises RejectedDraft when no supported operator combines the two.
    """
    other = cast(body, other, result.dtype)
    if not broadcasts(result.shape, other.shape) or np.broadcast_shapes(result.shape, other.shape) != result.shape:
        other = _number_of(body, other)
    operators = _LOGIC if result.dtype == "bool" else _MIXERS
    for op in body.rng.sample(operators, len(operators)):
        mark = body.mark()
        try:
            return body.call(op, result, other)
        except RejectedDraft:
            body.rollback(mark)
    raise RejectedDraft(f"nothing mixes two values of type {result.dtype}")


def cast(body: Scope, operand: Operand, dtype: str) -> Operand:
    """Return `operand` with another element type. Raises RejectedDraft where its elements may not fit."""
    if operand.dtype == dtype:
        return operand
    info = DTYPES[dtype]
    if is_float(operand.dtype) and is_integer(dtype) and not operand.facts.inside(max(info.low, -100), 100):
        operand = guard(body, operand, (max(info.low, -100.0), 100.0))
    return body.call("Cast", operand, attributes=attributes({"to": info.code}))


def kept_inside(body: Scope, operand: Operand, invariant: Facts) -> Operand:
    """Return a value computed from `operand` within the interval of `invariant` (and integral if that is).

    Raises RejectedDraft when the target takes none of the ways.
    """
    if operand.dtype == "bool" or _keeps(operand, invariant):
        return operand
    for way in body.rng.sample(_WAYS, len(_WAYS)):
        mark = body.mark()
        try:
            result = way(body, operand, invariant)
        except RejectedDraft:
            body.rollback(mark)
            continue
        if _keeps(result, invariant):
            return result
        body.rollback(mark)
    raise RejectedDraft("nothing brings the value back into its interval")


def invariant_of(operand: Operand, style: Style) -> Facts:
    """Return an interval around an initial value, wide enough for a body to change it; integral if the value is."""
    if operand.dtype == "bool":
        return Facts(0, 1, integral=True, exact=operand.facts.exact)
    usual = choose_range(operand.dtype, style)
    facts, info = operand.facts, DTYPES[operand.dtype]
    lo, hi = min(facts.lo, usual.lo), max(facts.hi, usual.hi)
    integral = facts.integral and (style.integral or info.kind != "float")
    if integral:
        lo, hi = float(math.floor(lo)), float(math.ceil(hi))
    return Facts(max(lo, info.low), min(hi, info.high), integral, exact=facts.exact)


def scalar_of(body: Scope, operand: Operand) -> Operand:
    """Return a scalar (rank 0) that depends on the elements of `operand`."""
    return operand if operand.shape == () else _number_of(body, operand)


def _keeps(operand: Operand, invariant: Facts) -> bool:
    facts = operand.facts
    return facts.inside(invariant.lo, invariant.hi) and (facts.integral or not invariant.integral)


def _near(body: BodyScope, made: list[Operand], dtype: str, shape: Shape) -> Iterator[Operand]:
    """Yield the results in the order of information that the conversion loses, least first."""
    if not made:
        return

    def distance(operand: Operand) -> tuple[int, int, float]:
        size = math.prod(operand.shape) != math.prod(shape)
        return operand.dtype != dtype, size, body.rng.random()

    yield from sorted(made, key=distance)[:_LOOKS]


def _converted_to(body: BodyScope, operand: Operand, dtype: str, shape: Shape) -> Operand:
    """Return `operand` with another type: cast, then reshaped, expanded, or its largest element spread."""
    operand = cast(body, operand, dtype)
    if operand.shape == shape:
        return operand
    if math.prod(operand.shape) == math.prod(shape):
        return _with_shape(body, "Reshape", operand, shape)
    if 0 in operand.shape:
        raise RejectedDraft("of no elements nothing can be made")
    if not broadcasts(operand.shape, shape) or np.broadcast_shapes(operand.shape, shape) != shape:
        operand = _number_of(body, operand)
    if body.rng.random() < 0.5 and dtype != "bool" and 0 not in shape:
        partner = body.new_input(dtype, shape, choose_range(dtype, body.style))
        return mixed(body, own_result(body, partner) if body.rng.random() < 0.2 else partner, operand)
    return _with_shape(body, "Expand", operand, shape)


def _with_shape(body: Scope, op: str, operand: Operand, shape: Shape) -> Operand:
    wanted = body.new_constant(Tensor("int64", np.array(shape, np.int64)))
    return body.call(op, operand, wanted)


def _number_of(body: Scope, operand: Operand) -> Operand:
    """Return the largest, smallest or first element, of rank 0."""
    if 0 in operand.shape:
        raise RejectedDraft("of no elements there is no largest one")
    if operand.dtype != "bool" and body.rng.random() < 0.7:
        mark = body.mark()
        try:
            op = body.rng.choice(("ReduceMax", "ReduceMin"))
            return body.call(op, operand, attributes=attributes({"keepdims": 0}))
        except RejectedDraft:
            body.rollback(mark)
    flat = _with_shape(body, "Reshape", operand, (math.prod(operand.shape),))
    place = body.new_constant(Tensor("int64", np.array(int(body.rng.random() * flat.shape[0]), np.int64)))
    return body.call("Gather", flat, place)


def _constant(body: Scope, value: float, dtype: str) -> Operand:
    return body.new_constant(tensor(np.asarray(value if is_float(dtype) else int(value)), dtype))


def _ends(operand: Operand, invariant: Facts) -> tuple[float, float]:
    """Return the ends to clip to; for floats with a fraction slightly inside the invariant, to allow for rounding."""
    lo, hi = invariant.lo, invariant.hi
    if invariant.integral or not is_float(operand.dtype):
        return math.ceil(lo), math.floor(hi)
    margin = (max(abs(lo), abs(hi), 2.0**-10)) * 16 * DTYPES[operand.dtype].eps + 1e-3 * (hi - lo)
    return lo + margin, hi - margin


def _clipped(body: Scope, operand: Operand, invariant: Facts) -> Operand:
    low, high = (_constant(body, end, operand.dtype) for end in _ends(operand, invariant))
    return body.apply(Call("Clip", (_whole(body, operand, invariant), low, high)))[0]


def _limited(body: Scope, operand: Operand, invariant: Facts) -> Operand:
    low, high = (_constant(body, end, operand.dtype) for end in _ends(operand, invariant))
    whole = _whole(body, operand, invariant)
    if body.rng.random() < 0.5:
        return body.call("Min", body.call("Max", whole, low), high)
    return body.call("Max", body.call("Min", whole, high), low)


def _wrapped(body: Scope, operand: Operand, invariant: Facts) -> Operand:
    """Wrap an integer by Mod, whose result has the divisor's sign."""
    most = math.floor(invariant.hi)
    if not is_integer(operand.dtype) or most < 1 or invariant.lo > 0:
        raise RejectedDraft("nothing to wrap by")
    return body.call("Mod", operand, _constant(body, min(most + 1, 7), operand.dtype))


def _guarded(body: Scope, operand: Operand, invariant: Facts) -> Operand:
    if invariant.integral and is_float(operand.dtype):
        raise RejectedDraft("guards leave fractions")
    return guard(body, operand, (invariant.lo, invariant.hi))


def _whole(body: Scope, operand: Operand, invariant: Facts) -> Operand:
    """Return `operand` without fractions where the invariant has none."""
    if not invariant.integral or operand.facts.integral:
        return operand
    return body.call(body.rng.choice(("Floor", "Ceil", "Round")), operand)


_WAYS: tuple[Callable[[Scope, Operand, Facts], Operand], ...] = (_clipped, _limited, _wrapped, _guarded)
