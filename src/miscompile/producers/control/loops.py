"""Loop: carried values, each with an interval invariant that the last operator of the body restores.

Facts of the carried values hold before the first iteration and after every one, so also with no iteration. Scan outputs
are generated only where the number of iterations is known, because shapes are static here. Source:
https://onnx.ai/onnx/operators/onnx__Loop.html
"""

import math
from typing import NamedTuple

import numpy as np

from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Tensor
from miscompile.graph.attributes import attributes
from miscompile.graph.model import Graph, TensorType
from miscompile.ops.facts import TRUTH, Facts
from miscompile.ops.spec import Call, Operand
from miscompile.producers.control.body import BodyScope
from miscompile.producers.control.branches import fed_truth, truth_of
from miscompile.producers.control.forms import Blocks
from miscompile.producers.control.shaping import (
    distinct,
    invariant_of,
    kept_inside,
    mixed,
    own_result,
    result_of,
    scalar_of,
)
from miscompile.producers.control.work import BodyFill, initial, open_body, some_results, still_exact, work
from miscompile.producers.scope import Scope, tensor_type

_MOST_TURNS = 4
_MOST_CARRIED = 3
_MOST_STACKED = 2
_STACKED_SIZE = 4096


class _Turns(NamedTuple):
    """How often the body runs: at most `most` times; exactly `sure` times, where that is known."""

    trips: Operand | None
    condition: Operand | None
    most: int
    sure: int | None
    leaves: bool
    """Whether the condition of the body must end the loop."""


def loop(scope: Scope, blocks: Blocks, fill: BodyFill) -> tuple[Operand, ...]:
    """Plant a Loop and return its results. Raises RejectedDraft; roll the scope back then."""
    rng = scope.rng
    starts = [initial(scope, blocks.dtypes["Loop"]) for _ in range(1 + int(rng.random() * _MOST_CARRIED))]
    turns = _turns(scope, blocks)
    body = open_body(scope, "Loop", blocks)
    turn = body.parameter("int64", (), Facts(0, max(turns.most - 1, 0), integral=True, exact=True))
    going = body.parameter("bool", (), TRUTH, hidden=turns.condition is None)
    states = [body.parameter(x.dtype, x.shape, invariant_of(x, scope.style)) for x in starts]
    work(body, fill)
    ends = [_next(body, state, turn) for state in states]
    # Without a first condition, the condition of the body is ignored by the operator's page, and heeded by runtimes.
    exits = blocks.has("Loop", "exit") and turns.condition is not None
    on, leaves = _going_on(body, turns, going, turn, ends, exits=exits)
    count = turns.sure if not leaves and blocks.has("Loop", "stacked") else None
    stacked = some_results(body, _MOST_STACKED) if count is not None and rng.random() < 0.6 else []
    stacked = [x for x in stacked if math.prod(x.shape) * _MOST_TURNS <= _STACKED_SIZE]
    on, *results = distinct(body, [on, *ends, *stacked])
    graph = body.close([on, *results])
    kinds = _kinds(graph, turns, going, on, list(zip(states, results, strict=False)), results[len(ends) :], count or 0)
    inputs = (turns.trips, turns.condition, *starts)
    return scope.add_block("Loop", inputs, attributes({"body": graph}), kinds)


def _kinds(
    body: Graph,
    turns: _Turns,
    going: Operand,
    on: Operand,
    carried: list[tuple[Operand, Operand]],
    stacked: list[Operand],
    count: int,
) -> list[tuple[TensorType, Facts]]:
    """Return types and facts of the results: carried values by their invariants, and stacked scan outputs."""
    pairs = [(going.name, on), *((state.name, end) for state, end in carried)]
    exact = still_exact(body, pairs, stacked)
    counted = exact[on.name] and all(x is None or x.facts.exact for x in (turns.trips, turns.condition))
    kinds = [
        (tensor_type(x.dtype, x.shape), x.facts._replace(exact=x.facts.exact and exact[end.name] and counted))
        for x, end in carried
    ]
    for x in stacked:
        kinds.append((tensor_type(x.dtype, (count, *x.shape)), x.facts._replace(exact=exact[x.name] and counted)))
    return kinds


def _turns(scope: Scope, blocks: Blocks) -> _Turns:
    """Draw trip count and first condition: constants, inputs, or computed."""
    rng = scope.rng
    fed = blocks.has("Loop", "fed")
    condition: Operand | None = None
    sure = True
    chance = rng.random()
    if fed and chance < 0.12:
        truth, sure = fed_truth(scope), False
        condition = truth if truth.shape == () else scope.call("Squeeze", truth)
    elif chance < 0.5:
        condition = scope.new_constant(Tensor("bool", np.array(True)), as_node=rng.random() < 0.3)
    chance = rng.random()
    if blocks.has("Loop", "exit") and chance < 0.08:
        condition = condition or scope.new_constant(Tensor("bool", np.array(True)))
        return _Turns(None, condition, _MOST_TURNS, None, leaves=True)
    if fed and chance < 0.35:
        counts = rng.sample(range(_MOST_TURNS + 1), 2)
        values = tuple(_count(value) for value in counts)
        trips = scope.new_cycled(values, Facts(min(counts), max(counts), integral=True, exact=True))
        return _Turns(trips, condition, max(counts), None, leaves=False)
    if fed and chance < 0.45:
        computed = _computed_count(scope)
        if computed is not None:
            return _Turns(computed, condition, _MOST_TURNS, None, leaves=False)
    count = 1 + int(rng.random() * _MOST_TURNS)
    trips = scope.new_constant(_count(count), as_node=rng.random() < 0.15)
    return _Turns(trips, condition, count, count if sure else None, leaves=False)


def _computed_count(scope: Scope) -> Operand | None:
    """Return a trip count made from an int64 value of the scope."""
    pool = [x for x in scope.pool.get("int64", ()) if x.value is None and 0 not in x.shape]
    if not pool:
        return None
    mark = scope.mark()
    try:
        number = scalar_of(scope, scope.rng.choice(pool))
        low, high = scope.new_constant(_count(0)), scope.new_constant(_count(_MOST_TURNS))
        return scope.apply(Call("Clip", (number, low, high)))[0]
    except RejectedDraft:
        scope.rollback(mark)
        return None


def _count(value: int) -> Tensor:
    return Tensor("int64", np.array(value, np.int64))


def _next(body: BodyScope, state: Operand, turn: Operand) -> Operand:
    """Return the next state: a result of the body, mostly of state and iteration number, within its interval."""
    rng = body.rng
    result = result_of(body, state.dtype, state.shape)
    if body.uses[state.name] == 0 or rng.random() < 0.4:
        result = _try_mixed(body, result, state)
    if rng.random() < 0.3:
        result = _try_mixed(body, result, turn)
    return kept_inside(body, result, state.facts)


def _try_mixed(body: BodyScope, result: Operand, other: Operand) -> Operand:
    mark = body.mark()
    try:
        return mixed(body, result, other)
    except RejectedDraft:
        body.rollback(mark)
        return result


def _going_on(
    body: BodyScope, turns: _Turns, going: Operand, turn: Operand, ends: list[Operand], *, exits: bool
) -> tuple[Operand, bool]:
    """Return the condition of the next iteration, and whether it may end the loop before its trip count."""
    rng = body.rng
    if turns.leaves:
        return body.call("Less", turn, body.new_constant(_count(_MOST_TURNS - 1))), True
    chance = rng.random()
    if exits and chance < 0.3:
        mark = body.mark()
        try:
            made = ends[int(rng.random() * len(ends))] if chance < 0.2 else turn
            return truth_of(body, made), True
        except RejectedDraft:
            body.rollback(mark)
    if turns.condition is not None and chance < 0.7:
        return own_result(body, going), False
    return own_result(body, body.new_constant(Tensor("bool", np.array(True)))), False
