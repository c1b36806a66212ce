"""The parts that If, Loop and Scan share: filling a body, initial values, and the exactness of results."""

from collections.abc import Callable, Mapping, Sequence

from miscompile.base.errors import RejectedDraft
from miscompile.graph.edges import reads
from miscompile.graph.model import Graph
from miscompile.ops.shapes import draw_shape
from miscompile.ops.spec import Operand
from miscompile.ops.values import choose_range
from miscompile.producers.control.body import BodyScope
from miscompile.producers.control.forms import Blocks
from miscompile.producers.guards import guard
from miscompile.producers.scope import Scope

BodyFill = Callable[[Scope, int], None]
"""Adds about so many operators to a scope."""

_MOST_NODES = 5
_REACH = 100.0
"""Initial values with a larger magnitude are guarded first, because operators of a body would soon overflow."""
_MOST_ELEMENTS = 512
_LOOKS = 8


def open_body(scope: Scope, op: str, blocks: Blocks) -> BodyScope:
    """Return a new body with the features that the target supports: captures, initialisers of its own."""
    return BodyScope(scope, op, blocks.dtypes[op], captures=blocks.has(op, "captured"), own=blocks.has(op, "own"))


def work(body: BodyScope, fill: BodyFill) -> None:
    """Add the operators of a body. Raises RejectedDraft when none could be added."""
    most = _MOST_NODES if body.depth == 1 else 3
    fill(body, 1 + int(body.rng.random() * most))
    if not body.made():
        raise RejectedDraft("the body does nothing")


def some_results(body: BodyScope, most: int) -> list[Operand]:
    """Return one to `most` different results of the body's operators, unused ones preferred."""
    names = [name for name in reversed(body.made()) if body.operands[name].dtype in body.carried]
    if not names:
        raise RejectedDraft(f"nothing in the body is of a type that {body.op} takes")
    count = 1 + int(body.rng.random() * most)
    chosen = names[:count] if body.rng.random() < 0.6 else body.rng.sample(names, min(count, len(names)))
    return [body.operands[name] for name in chosen]


def initial(scope: Scope, taken: Sequence[str]) -> Operand:
    """Return a value of one of the types in `taken` to begin with: a late result of the scope, or a new input."""
    rng = scope.rng
    operands = list(scope.operands.values())
    for _ in range(_LOOKS if operands else 0):
        operand = operands[max(int(rng.random() * len(operands)), int(rng.random() * len(operands)))]
        size = 1
        for length in operand.shape:
            size *= length
        if operand.value is not None or operand.dtype not in taken or not 0 < size <= _MOST_ELEMENTS:
            continue
        if operand.dtype == "bool" or operand.facts.magnitude <= _REACH or operand.dtype in ("uint8", "int8"):
            return operand
        return guard(scope, operand, (0.0 if operand.dtype.startswith("uint") else -_REACH, _REACH))
    dtype = "float32" if "float32" in taken and rng.random() < 0.5 else rng.choice(taken)
    return scope.new_input(dtype, draw_shape(rng, scope.limits), choose_range(dtype, scope.style))


def still_exact(body: Graph, carried: Sequence[tuple[str, Operand]], others: Sequence[Operand]) -> Mapping[str, bool]:
    """Return for each result of a body whether it is exact on every iteration.

    `carried` are pairs of a parameter and the result that it holds on the next iteration. The facts of results assume
    exact parameters. Where a carried result is not exact, no result that depends on its parameter is.
    """
    sources = {name: {name} for name, _ in carried}
    for node in body.nodes:
        found: set[str] = set()
        for name in reads(node):
            found |= sources.get(name, set())
        for name in node.outputs:
            sources[name] = found
    lost: set[str] = set()
    while True:
        more = {
            name
            for name, result in carried
            if name not in lost and (not result.facts.exact or sources.get(result.name, set()) & lost)
        }
        if not more:
            break
        lost |= more
    results = [*(result for _, result in carried), *others]
    return {r.name: r.facts.exact and not sources.get(r.name, set()) & lost for r in results}
