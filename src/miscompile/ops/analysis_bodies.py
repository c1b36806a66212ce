"""Facts of the outputs of If, Loop and Scan: abstract interpretation of their bodies, iteration by iteration.

An iteration on intervals covers that iteration of every run. The analysis ends after the greatest possible number of
iterations, or at a fixed point of the carried facts when the body does not read the iteration number. It claims nothing
where neither comes within 32 iterations. A result is exact only if the branch condition, or the number of iterations,
is exact too. Sources: https://onnx.ai/onnx/operators/onnx__If.html, onnx__Loop.html, onnx__Scan.html
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from miscompile.graph.bodies import scan_axes
from miscompile.graph.constant_nodes import constant_of
from miscompile.graph.edges import reads
from miscompile.graph.model import Graph, Node
from miscompile.ops.facts import TRUTH, Facts
from miscompile.ops.spec import Operand, Shape

Operands = Mapping[str, Operand]
RunBody = Callable[[Graph, Operands, Sequence[Operand]], list[Operand | None]]
"""Interprets a body with these outer values and inputs; returns its outputs, None where nothing is known."""

_MOST_TURNS = 32


def block(node: Node, operands: Operands, run: RunBody, *, thorough: bool = False) -> list[Operand | None]:
    """Return the results of a node with bodies, in the order of its outputs; None where nothing is known.

    Results of operators other than If, Loop and Scan are unknown. `thorough` also interprets branches whose condition
    is known to exclude them.
    """
    analyses = {"If": _branches, "Loop": _loop, "Scan": _scan}
    analysis = analyses.get(node.op)
    if analysis is None or node.domain:
        return []
    if thorough and node.op == "If":
        for body in node.subgraphs():
            run(body, operands, ())
    found = analysis(node, operands, run)
    return [x and x._replace(name=name) for name, x in zip(node.outputs, found, strict=False)]


def _branches(node: Node, operands: Operands, run: RunBody) -> list[Operand | None]:
    condition = operands[node.inputs[0]]
    bodies = {name: attribute.value for name, attribute in node.attributes.items()}
    if condition.value is not None and condition.value.size == 1:
        taken = "then_branch" if condition.value.reshape(-1)[0] else "else_branch"
        return run(bodies[taken], operands, ())
    both = (run(bodies[name], operands, ()) for name in ("then_branch", "else_branch"))
    sure = condition.facts.exact
    return [_weaker(_either(one, other), sure=sure) for one, other in zip(*both, strict=False)]


def _either(one: Operand | None, other: Operand | None) -> Operand | None:
    """Return the join of two values; None when their types differ."""
    if one is None or other is None or (one.dtype, one.shape) != (other.dtype, other.shape):
        return None
    a, b = one.facts, other.facts
    same = one.value is not None and other.value is not None and np.array_equal(one.value, other.value)
    facts = Facts(min(a.lo, b.lo), max(a.hi, b.hi), a.integral and b.integral, exact=a.exact and b.exact)
    return Operand("", one.dtype, one.shape, facts, one.value if same else None)


def _weaker(x: Operand | None, *, sure: bool) -> Operand | None:
    return x if x is None or sure else x._replace(facts=x.facts._replace(exact=False))


class _Turn(NamedTuple):
    """The results of one iteration: condition, carried values and scan rows; None where nothing is known."""

    on: Operand | None
    carried: tuple[Operand | None, ...]
    rows: tuple[Operand | None, ...]


class _Turns(NamedTuple):
    """The results of all iterations: final carried values, the join of the scan rows, and the number of iterations.

    `turns` is None where the number is unknown; `sure`: every correct implementation makes the same number.
    """

    carried: tuple[Operand | None, ...]
    rows: tuple[Operand | None, ...]
    turns: int | None
    sure: bool


class _Plan(NamedTuple):
    """Least and greatest number of iterations by the trip count; `steady`: the body ignores the iteration number."""

    least: float
    most: float
    steady: bool
    sure: bool


def _loop(node: Node, operands: Operands, run: RunBody) -> list[Operand | None]:
    inputs = [operands[name] if name else None for name in node.inputs]
    trips, condition = (*inputs, None, None)[:2]
    starts = tuple(x for x in inputs[2:] if x is not None)
    body: Graph = node.attributes["body"].value

    def turn(number: int, on: Operand, carried: tuple[Operand, ...]) -> _Turn:
        found = run(body, operands, (_number(number), on, *carried))
        return _Turn(found[0], tuple(found[1 : len(carried) + 1]), tuple(found[len(carried) + 1 :]))

    going = condition or _truth()
    least, most = _allowed(trips)
    steady = not any(body.inputs[0].name in reads(inner) for inner in body.nodes)
    sure = (trips is None or trips.facts.exact) and going.facts.exact
    found = _run(turn, going, starts, _Plan(least, most, steady, sure))
    rows = found.rows or (None,) * (len(body.outputs) - 1 - len(starts))
    return [*found.carried, *(_stacked(row, found.turns, 0, sure=found.sure) for row in rows)]


def _allowed(trips: Operand | None) -> tuple[float, float]:
    """Return the least and the greatest number of iterations that a trip count allows."""
    if trips is None:
        return math.inf, math.inf
    if trips.value is not None:
        number = max(0.0, float(trips.value.reshape(-1)[0]))
        return number, number
    return max(0.0, trips.facts.lo), max(0.0, trips.facts.hi)


def _run(
    turn: Callable[[int, Operand, tuple[Operand, ...]], _Turn], going: Operand, starts: tuple[Operand, ...], plan: _Plan
) -> _Turns:
    """Interpret a loop; the result joins the carried values of every iteration after which it may end."""
    nothing = _Turns((None,) * len(starts), (), None, sure=False)
    state, sure, number = starts, plan.sure, 0
    last: tuple[Operand | None, ...] | None = None
    rows: tuple[Operand | None, ...] = ()
    ends: set[int] = set()
    while True:
        must = number >= plan.most or _is(going, value=False)
        if must or number >= plan.least or not _is(going, value=True):
            last = state if last is None else tuple(map(_either, last, state))
            ends.add(number)
        if must:
            break
        if number >= _MOST_TURNS:
            return nothing
        found = turn(number, going, state)
        after = tuple(x for x in found.carried if x is not None)
        if len(after) < len(starts) or found.on is None:
            return nothing
        rows = found.rows if number == 0 else tuple(map(_either, rows, found.rows))
        sure = sure and found.on.facts.exact
        same = all(a.facts == b.facts and a.shape == b.shape for a, b in zip(after, state, strict=True))
        if plan.steady and same and _alike(going, found.on) and plan.most < math.inf:
            last = after if last is None else tuple(map(_either, last, after))
            ends = {int(plan.most)} if plan.least == plan.most and _is(going, value=True) else {0, 1}
            break
        state, going, number = after, found.on, number + 1
    carried = tuple(_weaker(x, sure=sure) for x in last or ())
    return _Turns(carried, rows, ends.pop() if len(ends) == 1 else None, sure=sure)


def _alike(one: Operand, other: Operand) -> bool:
    """Tell whether the same is known of both conditions."""
    return one.facts == other.facts and _is(one, value=True) == _is(other, value=True)


def _is(truth: Operand, *, value: bool) -> bool:
    return truth.value is not None and truth.value.size == 1 and bool(truth.value.reshape(-1)[0]) == value


def ends_by_itself(node: Node, operands: Operands) -> bool:
    """Tell whether the body of a Loop without a first condition may end the loop by its own condition.

    `operands` are those in scope.

    The page of Loop says that the condition of the body is ignored there; most runtimes heed it, so that the results of
    such a loop are not certain. Only a condition that is known to be true is sure not to end it.
    """
    if len(node.inputs) > 1 and node.inputs[1]:
        return False
    body: Graph = node.attributes["body"].value
    makers = {name: inner for inner in body.nodes for name in inner.outputs}
    name = body.outputs[0].name
    while (maker := makers.get(name)) is not None and maker.op == "Identity" and not maker.domain:
        name = maker.inputs[0]
    given = None if maker is None else constant_of(maker)
    if given is not None:
        return not bool(given.array.all())
    if name in body.initializers:
        return not bool(body.initializers[name].array.all())
    if maker is not None or name in (info.name for info in body.inputs):
        return maker is not None or len(body.inputs) < 2 or name != body.inputs[1].name
    outer = operands.get(name)
    return outer is None or outer.value is None or not bool(outer.value.all())


def scanned_count(node: Node) -> int:
    """Return how many of its inputs a Scan scans, which are the last; 0 where its attribute says no possible number."""
    count = int(node.attributes["num_scan_inputs"].value) if "num_scan_inputs" in node.attributes else 0
    return count if 0 < count <= len(node.inputs) else 0


def _scan(node: Node, operands: Operands, run: RunBody) -> list[Operand | None]:
    count = scanned_count(node)
    if not count:
        return []
    inputs = [operands[name] for name in node.inputs]
    starts, scanned = tuple(inputs[: len(inputs) - count]), inputs[len(inputs) - count :]
    body: Graph = node.attributes["body"].value
    axes = scan_axes(node, "scan_input_axes", count)
    if any(not x.shape for x in scanned):
        return []
    length = scanned[0].shape[axes[0] % scanned[0].rank]
    slices = [_slice(x, axis) for x, axis in zip(scanned, axes, strict=True)]

    def turn(number: int, on: Operand, carried: tuple[Operand, ...]) -> _Turn:
        del number
        found = run(body, operands, (*carried, *slices))
        return _Turn(on, tuple(found[: len(carried)]), tuple(found[len(carried) :]))

    found = _run(turn, _truth(), starts, _Plan(length, length, steady=True, sure=True))
    rows = found.rows or (None,) * (len(body.outputs) - len(starts))
    outs = scan_axes(node, "scan_output_axes", len(rows))
    return [
        *found.carried,
        *(_stacked(row, found.turns, axis, sure=found.sure) for row, axis in zip(rows, outs, strict=True)),
    ]


def _slice(x: Operand, axis: int) -> Operand:
    at = axis % x.rank
    return Operand("", x.dtype, x.shape[:at] + x.shape[at + 1 :], x.facts)


def _stacked(row: Operand | None, count: int | None, axis: int, *, sure: bool) -> Operand | None:
    """Return the scan rows stacked along a new axis; None when their number is unknown."""
    if row is None or count is None:
        return None
    at = axis % (row.rank + 1)
    shape: Shape = (*row.shape[:at], count, *row.shape[at:])
    return _weaker(Operand("", row.dtype, shape, row.facts), sure=sure)


def _truth() -> Operand:
    return Operand("", "bool", (), TRUTH, np.array(True))


def _number(number: int) -> Operand:
    facts = Facts(float(number), float(number), integral=True, exact=True)
    return Operand("", "int64", (), facts, np.array(number, np.int64))
