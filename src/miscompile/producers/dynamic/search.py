"""The search for a plan: tie one axis of one input to a symbol, then repair the nodes that become invalid.

The graph is replayed at a size that no value of the static graph has. The first invalid node shows a dependence on that
size: another operand must have it too, or an element of a structural constant must follow it.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from miscompile.base.errors import RejectedDraft
from miscompile.graph.model import Node
from miscompile.ops.registry import having
from miscompile.ops.spec import Operand
from miscompile.producers.dynamic.plan import Base, Linear, ReplayError, SizePlan, Sizes, require_same_kind

GENERIC: tuple[Mapping[str, int], ...] = ({"N": 11, "M": 13}, {"N": 14, "M": 10})
"""Sizes that no generated graph has: a property that holds at both is assumed to hold for all sizes."""

_REPAIRS = 14
_SEEDS = 6
_ENOUGH = 3
"""Number of plans to compare; the search returns the one that makes most of the graph symbolic."""
_TIE_ALL = 0.35
"""Share of searches that start with every input axis of the chosen size."""
_FOLLOW_ALL = 0.5
"""Share of searches that start with every structural element of the chosen size following it."""


@dataclass(frozen=True, slots=True)
class FoundSymbols:
    """A plan, the size that each symbol has in the static graph, and the graph's values at the generic sizes."""

    plan: SizePlan
    original: Sizes
    generic: tuple[Mapping[str, Operand], ...]

    def reach(self, base: Base) -> int:
        """Return how many results of operators have a size that depends on a symbol."""
        first, second = self.generic
        return sum(first[name].shape != second[name].shape for node in base.nodes for name in node.outputs)


def search(base: Base, rng: random.Random, symbols: int) -> FoundSymbols:
    """Return a plan with one symbol, or two if `symbols` is 2 and the graph allows it. Raises RejectedDraft."""
    found = _seeded(base, rng, "N", SizePlan(), {})
    if symbols > 1:
        try:
            return _seeded(base, rng, "M", found.plan, found.original)
        except RejectedDraft:
            return found
    return found


def _seeded(base: Base, rng: random.Random, symbol: str, plan: SizePlan, original: Sizes) -> FoundSymbols:
    places = [
        (name, axis)
        for name, shape in base.sources.items()
        for axis, size in enumerate(shape)
        if size > 1 and (name, axis) not in plan.ties and name in base.scope.inputs
    ]
    rng.shuffle(places)
    found: list[FoundSymbols] = []
    for place in places[:_SEEDS]:
        size = base.sources[place[0]][place[1]]
        begun = _begin(base, rng, plan.tied(place, symbol), symbol, size)
        done = _repaired(base, rng, begun, symbol, size)
        if done is not None:
            found.append(FoundSymbols(done[0], {**original, symbol: size}, done[1]))
            if len(found) == _ENOUGH:
                break
    if not found:
        raise RejectedDraft("no size can be symbolic")
    return max(found, key=lambda one: one.reach(base))


def _begin(base: Base, rng: random.Random, plan: SizePlan, symbol: str, size: int) -> SizePlan:
    """Return the initial plan: one axis, or all axes and elements of the same size."""
    if rng.random() < _TIE_ALL:
        for name in base.scope.inputs:
            for axis, other in enumerate(base.sources.get(name, ())):
                if other == size and (name, axis) not in plan.ties:
                    plan = plan.tied((name, axis), symbol)
    if rng.random() < _FOLLOW_ALL:
        for node in base.nodes:
            for name in node.inputs if node.op in having("holds-sizes") else ():
                if name in base.structural:
                    for position, element in enumerate(_elements(base.structural[name])):
                        if element == size and position not in plan.adapted.get(name, {}):
                            plan = plan.following(name, position, Linear(symbol, 1, 0))
    return plan


def _repaired(
    base: Base, rng: random.Random, plan: SizePlan, symbol: str, size: int
) -> tuple[SizePlan, tuple[Mapping[str, Operand], ...]] | None:
    for _ in range(_REPAIRS):
        try:
            return plan, _generic(base, plan)
        except ReplayError as failure:
            if failure.place >= len(base.nodes):
                return None
            choices = list(_repairs(base, plan, base.nodes[failure.place], symbol, size))
            if not choices:
                return None
            weights = [weight for weight, _ in choices]
            plan = rng.choices([choice for _, choice in choices], weights)[0]
    return None


def _generic(base: Base, plan: SizePlan) -> tuple[Mapping[str, Operand], ...]:
    """Replay at both generic sizes. Raises ReplayError."""
    first, second = (base.replay(plan, sizes) for sizes in GENERIC)
    require_same_kind(base, first, second)
    require_same_kind(base, second, first)
    return first, second


def _repairs(base: Base, plan: SizePlan, node: Node, symbol: str, size: int) -> Iterator[tuple[float, SizePlan]]:
    """Yield plans that may make `node` valid, each with a weight."""
    for name in dict.fromkeys(node.inputs):
        if name in base.structural:
            for position, element in enumerate(_elements(base.structural[name])):
                if position not in plan.adapted.get(name, {}):
                    for weight, linear in _readings(node, plan, name, element, symbol, size):
                        yield weight, plan.following(name, position, linear)
    direct = set(node.inputs)
    for name in _ancestors(base, node):
        for axis, other in enumerate(base.sources[name]):
            if other == size and (name, axis) not in plan.ties:
                yield 4.0 if name in direct else 1.0, plan.tied((name, axis), symbol)


def _readings(
    node: Node, plan: SizePlan, name: str, element: int, symbol: str, size: int
) -> Iterator[tuple[float, Linear]]:
    """Yield the linear functions of the size that give an element."""
    if element == size:
        yield 6.0, Linear(symbol, 1, 0)
    elif element > 0 and element % size == 0:
        yield 3.0, Linear(symbol, element // size, 0)
    elif element > 1 and abs(element - size) <= 2:
        yield 1.0, Linear(symbol, 1, element - size)
    if node.op == "Reshape" and element > 0 and not any(other.offset == -1 for other in _known(plan, name)):
        yield 2.0, Linear("", 0, -1)


def _known(plan: SizePlan, name: str) -> list[Linear]:
    return [element for element in plan.adapted.get(name, {}).values() if not element.symbol]


def _elements(operand: Operand) -> list[int]:
    assert operand.value is not None
    elements: list[int] = operand.value.reshape(-1).tolist()
    return elements


def _ancestors(base: Base, node: Node) -> list[str]:
    """Return the sources that `node` depends on, in order."""
    wanted = {name for name in node.inputs if name}
    for earlier in reversed(base.nodes):
        if wanted.intersection(earlier.outputs):
            wanted.update(name for name in earlier.inputs if name)
    return [name for name in base.sources if name in wanted]
