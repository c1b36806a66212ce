"""Duplicated computations: some readers of a shared value get a copy computed from the same operands.

Passes count readers before they fuse, and merge equal nodes before or after they do so; a copy changes both. Random
operators are never copied.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from miscompile.graph.edges import reads
from miscompile.graph.model import Model, Node
from miscompile.graph.rename import NameSupply, redirect, refresh
from miscompile.transforms.exact.placed import Placed
from miscompile.transforms.exact.scopes import NodeScope, rewrite, scopes
from miscompile.transforms.functions.calls import pure
from miscompile.transforms.functions.regions import names_of

_MOVED = 0.5
"""Share of the readers that get the copy."""

_CAPTURE = -1
"""The slot of captured values, for all bodies of a node together."""

_Use = tuple[int, int, str]
"""The position of a reader, its slot, and the value."""


@dataclass(frozen=True, slots=True)
class Duplicate(Placed):
    """Splits values with several readers into two values. Places are nodes, and initialisers by their names.

    Nodes with bodies are copied as well, and both operands of `x * x` count as readers.
    """

    stream_name: ClassVar[str] = "Duplicate"

    def places(self, model: Model) -> tuple[str, ...]:
        """Return the nodes and initialisers whose readers can be divided."""
        return tuple(place for scope in scopes(model) for place in _shared(scope, model))

    def apply(self, model: Model) -> Model:
        """Return `model` with copies. Raises RejectedDraft when no value has two readers."""
        picked, names = self.picked(self.places(model)), NameSupply(names_of(model))

        def change(scope: NodeScope) -> NodeScope:
            for place, made in _shared(scope, model).items():
                if place in picked:
                    scope = self._divided(scope, place, made, names)
            return scope

        return rewrite(model, change)

    def _divided(self, scope: NodeScope, place: str, made: Sequence[str], names: NameSupply) -> NodeScope:
        instead = {name: names.fresh(f"{name}_twin") for name in made if name}
        moved = self._moved(scope, place, _uses(scope.nodes, made))
        nodes = [
            _rerouted(node, {(slot, name) for user, slot, name in moved if user == here}, instead)
            for here, node in enumerate(scope.nodes)
        ]
        if made[0] in scope.initializers:
            copied = {instead[made[0]]: scope.initializers[made[0]]}
            return replace(scope, initializers={**scope.initializers, **copied}, nodes=tuple(nodes))
        here = next(place for place, node in enumerate(nodes) if node.outputs == tuple(made))
        twin = refresh((nodes[here],), instead, lambda name: names.fresh(f"{name}_twin"))
        return replace(scope, nodes=(*nodes[: here + 1], *twin, *nodes[here + 1 :]))

    def _moved(self, scope: NodeScope, place: str, uses: Sequence[_Use]) -> list[_Use]:
        """Return the uses that become uses of the copy: at least one, and at least one use of the original remains."""
        draws = {use: self.draw(place, scope.place_of(scope.nodes[use[0]]), use[1], use[2]) for use in uses}
        ordered = sorted(uses, key=lambda use: (draws[use], use))
        moved = [use for use in ordered if draws[use] < _MOVED] or ordered[:1]
        kept = bool(scope.output_names.intersection(name for _, _, name in uses))
        return moved if kept or len(moved) < len(uses) else moved[:-1]


def _shared(scope: NodeScope, model: Model) -> dict[str, tuple[str, ...]]:
    """Return the places whose values have two or more readers, graph outputs included, with these values."""
    given, found = scope.given, {}
    for made in _sources(scope, model):
        if not given.isdisjoint(made):
            continue
        uses = _uses(scope.nodes, made)
        total = len(uses) + len(scope.output_names.intersection(filter(None, made)))
        if uses and total > 1:
            found[scope.place(next(filter(None, made)))] = made
    return found


def _sources(scope: NodeScope, model: Model) -> Iterable[tuple[str, ...]]:
    yield from ((name,) for name in scope.initializers)
    yield from (node.outputs for node in scope.nodes if any(node.outputs) and pure((node,), model))


def _uses(nodes: Sequence[Node], values: Iterable[str]) -> list[_Use]:
    wanted = frozenset(filter(None, values))
    found: list[_Use] = []
    for place, node in enumerate(nodes):
        found += [(place, slot, name) for slot, name in enumerate(node.inputs) if name in wanted]
        captured = set(reads(replace(node, inputs=()))) if node.attributes else set()
        found += [(place, _CAPTURE, name) for name in sorted(wanted & captured)]
    return found


def _rerouted(node: Node, moved: set[tuple[int, str]], instead: Mapping[str, str]) -> Node:
    if not moved:
        return node
    inputs = tuple(instead[name] if (slot, name) in moved else name for slot, name in enumerate(node.inputs))
    captured = {name: instead[name] for slot, name in moved if slot == _CAPTURE}
    return replace(redirect(replace(node, inputs=()), captured), inputs=inputs)
