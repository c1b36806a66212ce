"""If: two branches with different operators on the same outer values, and a condition that selects both over the feeds.

Source: https://onnx.ai/onnx/operators/onnx__If.html
"""

import numpy as np

from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.attributes import attributes
from miscompile.ops.facts import TRUTH, Facts
from miscompile.ops.spec import Operand
from miscompile.producers.control.body import BodyScope
from miscompile.producers.control.forms import Blocks
from miscompile.producers.control.shaping import distinct, result_of, scalar_of
from miscompile.producers.control.work import BodyFill, open_body, some_results, work
from miscompile.producers.scope import Scope, tensor_type

_MOST_RESULTS = 3
_FED, _COMPUTED = 0.5, 0.85
"""Shares of conditions that are inputs, and those together with computed ones; the others are constants."""


def branch(scope: Scope, blocks: Blocks, fill: BodyFill) -> tuple[Operand, ...]:
    """Plant an If and return its results. Raises RejectedDraft; roll the scope back then."""
    condition = _condition(scope)
    then = open_body(scope, "If", blocks)
    work(then, fill)
    ends = some_results(then, _MOST_RESULTS)
    first = then.close(ends)
    other = open_body(scope, "If", blocks)
    work(other, fill)
    others = distinct(other, [result_of(other, end.dtype, end.shape) for end in ends])
    second = other.close(others)
    results = [
        (tensor_type(a.dtype, a.shape), _either(a.facts, b.facts, condition.facts))
        for a, b in zip(ends, others, strict=True)
    ]
    bodies = {"then_branch": first, "else_branch": second}
    if scope.rng.random() < 0.3:
        bodies = dict(reversed(bodies.items()))
    return scope.add_block("If", (condition,), attributes(bodies), results)


def truth_of(scope: Scope, operand: Operand) -> Operand:
    """Return a truth of rank 0 that is computed from `operand`. Raises RejectedDraft."""
    number = scalar_of(scope, operand)
    if number.dtype == "bool":
        return number
    facts = number.facts
    middle = min(max((facts.lo + facts.hi) / 2, -100.0), 100.0)
    limit = float(round(middle)) if facts.integral or scope.rng.random() < 0.5 else middle
    constant = scope.new_constant(tensor(np.asarray(int(limit) if facts.integral else limit), number.dtype))
    return scope.call(scope.rng.choice(("Less", "Greater", "GreaterOrEqual", "LessOrEqual")), number, constant)


def _either(one: Facts, other: Facts, condition: Facts) -> Facts:
    """Return the join of two facts."""
    return Facts(
        min(one.lo, other.lo),
        max(one.hi, other.hi),
        one.integral and other.integral,
        exact=one.exact and other.exact and condition.exact,
    )


def _condition(scope: Scope) -> Operand:
    rng = scope.rng
    chance = rng.random()
    inside = isinstance(scope, BodyScope)
    if chance < (_FED / 2 if inside else _FED):
        return fed_truth(scope)
    if chance < _COMPUTED:
        mark = scope.mark()
        try:
            return _computed(scope)
        except RejectedDraft:
            scope.rollback(mark)
            return fed_truth(scope)
    return scope.new_constant(_truth(scope, rng.random() < 0.5), as_node=rng.random() < 0.3)


def fed_truth(scope: Scope) -> Operand:
    """Return an input that is true on some feeds and false on others; one in a nested body changes half as often.

    The feeds then cover every combination of nested conditions.
    """
    shape = (1,) if scope.rng.random() < 0.15 else ()
    first = scope.rng.random() < 0.5
    turns = 1 << (scope.depth if isinstance(scope, BodyScope) else 0)
    values = [first] * turns + [not first] * turns
    return scope.new_cycled(tuple(Tensor("bool", np.full(shape, value)) for value in values), TRUTH)


def _truth(scope: Scope, value: bool) -> Tensor:
    return Tensor("bool", np.full((1,) if scope.rng.random() < 0.15 else (), value))


def _computed(scope: Scope) -> Operand:
    """Return a truth computed from values of the scope, late ones rather than early ones."""
    rng = scope.rng
    operands = [x for x in scope.operands.values() if x.value is None and 0 not in x.shape]
    if not operands:
        raise RejectedDraft("there is nothing to compute a condition from")
    place = max(int(rng.random() * len(operands)), int(rng.random() * len(operands)))
    return truth_of(scope, operands[place])
