"""Another order of independent nodes, and of initialisers.

Any topological order of an ONNX graph is valid, but passes visit nodes in the written order, and memory planners depend
on it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import ClassVar

from miscompile.base.errors import RejectedDraft
from miscompile.graph.equality import same_model
from miscompile.graph.model import Model, Node
from miscompile.transforms.exact.placed import Placed
from miscompile.transforms.exact.scopes import NodeScope, rewrite, scopes
from miscompile.transforms.functions.calls import pure
from miscompile.transforms.functions.convex_sets import links

_Rank = tuple[float, float, int]


@dataclass(frozen=True, slots=True)
class NodeOrder(Placed):
    """Moves nodes as early or as late as possible. Places are nodes, and initialisers by their names.

    Random operators keep their order among themselves.
    """

    stream_name: ClassVar[str] = "Order"

    def places(self, model: Model) -> tuple[str, ...]:
        """Return the nodes and initialisers that are not alone in their scope."""
        found: list[str] = []
        for scope in scopes(model):
            found += [scope.place_of(node) for node in scope.nodes if len(scope.nodes) > 1]
            found += [scope.place(name) for name in scope.initializers if len(scope.initializers) > 1]
        return tuple(found)

    def apply(self, model: Model) -> Model:
        """Return `model` in another order. Raises RejectedDraft when no other order exists or is drawn."""
        picked = self.picked(self.places(model))

        def change(scope: NodeScope) -> NodeScope:
            nodes, names = self._nodes(scope, picked, model), self._names(scope, picked)
            if nodes == scope.nodes and names == list(scope.initializers):
                return scope
            return replace(scope, nodes=nodes, initializers={name: scope.initializers[name] for name in names})

        changed = rewrite(model, change)
        if same_model(changed, model) and _constants(changed) == _constants(model):
            raise RejectedDraft("nothing can stand elsewhere")
        return changed

    def _rank(self, place: str, here: int, picked: frozenset[str]) -> _Rank:
        """Return the sort key of a node or initialiser: before all, after all, or its current position."""
        if place not in picked:
            return 0.0, 0.0, here
        draw = self.draw(place)
        return (-1.0 if self.draw(place, "early") < 0.5 else 1.0), draw, here

    def _names(self, scope: NodeScope, picked: frozenset[str]) -> list[str]:
        ranks = {name: self._rank(scope.place(name), at, picked) for at, name in enumerate(scope.initializers)}
        return sorted(ranks, key=ranks.__getitem__)

    def _nodes(self, scope: NodeScope, picked: frozenset[str], model: Model) -> tuple[Node, ...]:
        ranks = {at: self._rank(scope.place_of(node), at, picked) for at, node in enumerate(scope.nodes)}
        return tuple(scope.nodes[at] for at in _sorted(scope.nodes, ranks, model))


def _sorted(nodes: tuple[Node, ...], ranks: Mapping[int, _Rank], model: Model) -> list[int]:
    """Return the topological order that always continues with the admissible node of the lowest rank."""
    before = [set(earlier) for earlier in links(nodes).before]
    drawn = [at for at, node in enumerate(nodes) if not pure((node,), model)]
    for earlier, later in pairwise(drawn):
        before[later].add(earlier)
    after: dict[int, list[int]] = {}
    for at, earlier_ones in enumerate(before):
        for other in earlier_ones:
            after.setdefault(other, []).append(at)
    ready = [(ranks[at], at) for at, earlier_ones in enumerate(before) if not earlier_ones]
    heapify(ready)
    order: list[int] = []
    while ready:
        _, at = heappop(ready)
        order.append(at)
        for other in after.get(at, ()):
            before[other].discard(at)
            if not before[other]:
                heappush(ready, (ranks[other], other))
    return order


def _constants(model: Model) -> list[list[str]]:
    return [list(scope.initializers) for scope in scopes(model)]
