"""Nodes moved into a body: the branch of an If that is always taken, a Loop or a Scan of one iteration.

The results are bit-identical, but passes stop at the border of a body, handle captures, hoist constants and inline
branches with a constant condition. They cannot inline a branch whose condition is computed at run time. Sources:
https://onnx.ai/onnx/operators/onnx__If.html, onnx__Loop.html, onnx__Scan.html
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from miscompile.base.errors import RejectedDraft, SpecError
from miscompile.core.tensor import Tensor
from miscompile.graph.edges import reads, toposort
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueType
from miscompile.graph.rename import NameSupply
from miscompile.transforms.exact.constness import constants
from miscompile.transforms.exact.placed import Placed
from miscompile.transforms.exact.schemas import gives
from miscompile.transforms.exact.scopes import NodeScope, rewrite, scopes, types_by_scope
from miscompile.transforms.exact.structural import structural_values
from miscompile.transforms.exact.wrap_kinds import HOWS, PLAIN, WrapKind, WrappedNodes, wrapped
from miscompile.transforms.functions.calls import pure
from miscompile.transforms.functions.convex_sets import links
from miscompile.transforms.functions.regions import names_of

_SIZES = (1, 1, 2, 3, 5)
_NESTED = 0.25
"""Share of the wrapped sets that are wrapped again, in another body."""

_MOVED = 0.5
"""Share of the sets whose own initialisers move into the body."""


@dataclass(frozen=True, slots=True)
class Wrap(Placed):
    """Moves convex sets of nodes into the body of an If, Loop or Scan. Places are nodes; sets grow around them.

    `how` is one of `HOWS`, or `any`; `depth` the greatest resulting nesting of bodies. Values that hold sizes and the
    like stay outside, unless `structural`, and so do constants with other readers, because these would no longer be
    constants there. Nodes in functions stay, because their types are unknown.
    """

    stream_name: ClassVar[str] = "Wrap"

    how: WrapKind = "any"
    depth: int = 3
    structural: bool = False

    def __post_init__(self) -> None:
        """Raise SpecError for values that mean nothing."""
        if self.how not in (*HOWS, "any") or self.depth < 1 or not 0 <= self.share <= 1:
            raise SpecError(f"how is any or one of {', '.join(HOWS)}, depth at least 1, share a number from 0 to 1")

    def places(self, model: Model) -> tuple[str, ...]:
        """Return the nodes that can be wrapped."""
        return self._places(model, types_by_scope(model), self._fixed(model))

    def _fixed(self, model: Model) -> frozenset[str]:
        """Return the values that no body may compute: constants and structural values."""
        fixed = frozenset() if self.structural else structural_values(model)
        return fixed.union(name for scope in scopes(model) for name, _ in constants(scope))

    def _places(
        self, model: Model, types: Mapping[str, Mapping[str, ValueType]], fixed: frozenset[str]
    ) -> tuple[str, ...]:
        return tuple(
            scope.place_of(node)
            for scope in scopes(model)
            if scope.path in types and scope.opset
            for used in [_used(scope)]
            for node in scope.nodes
            if _can_move(node, scope, types[scope.path], model)
            and self._depth(scope, (node,)) <= self.depth
            and fixed.isdisjoint(filter(None, node.outputs))
            and not used.isdisjoint(filter(None, node.outputs))
        )

    def apply(self, model: Model) -> Model:
        """Return `model` with nodes in bodies. Raises RejectedDraft when no node can be wrapped."""
        types, fixed, names = types_by_scope(model), self._fixed(model), NameSupply(names_of(model))
        picked = self.picked(self._places(model, types, fixed))

        def change(scope: NodeScope) -> NodeScope:
            if scope.path not in types or not scope.opset:
                return scope
            taken: set[str] = set()
            for node in scope.nodes:
                place = scope.place_of(node)
                if place in picked and taken.isdisjoint(node.outputs):
                    scope = self._at(scope, place, _Around(model, types[scope.path], fixed, names, taken))
            return _with_output_types(scope, types[scope.path]) if taken else scope

        changed = rewrite(model, change)
        if changed == model:
            raise RejectedDraft("none of the nodes chosen can be wrapped")
        return changed

    def _depth(self, scope: NodeScope, nodes: tuple[Node, ...]) -> int:
        return scope.depth + 1 + max(map(depth_of, nodes))

    def _at(self, scope: NodeScope, place: str, around: "_Around") -> NodeScope:
        """Return `scope` with a set of nodes around the one at `place` wrapped, if one can be."""
        at = next(at for at, node in enumerate(scope.nodes) if scope.place_of(node) == place)
        if self._depth(scope, (scope.nodes[at],)) > self.depth:  # bodies in it may have been wrapped already
            return scope
        chosen = self._grown(scope, at, place, around)
        if not around.fixed.isdisjoint(_used_outside(scope, chosen)):
            chosen = frozenset((at,))  # a neighbour computes a structural value; the node itself does not
        outputs = _used_outside(scope, chosen)
        if not outputs or not around.fixed.isdisjoint(outputs):
            return scope
        nodes = tuple(scope.nodes[one] for one in sorted(chosen))
        rng = self.stream(place, "wrap")
        moved = _own_constants(scope, nodes, chosen) if rng.random() < _MOVED else {}
        piece = WrappedNodes(nodes, outputs, moved, around.types, scope.opset, around.fixed)
        new = wrapped(piece, self.how, rng, around.names)
        if rng.random() < _NESTED and self._depth(scope, new) <= self.depth:
            new = wrapped(replace(piece, nodes=new, constants={}), "any", rng, around.names)
        around.taken.update(name for node in (*nodes, *new) for name in node.outputs)
        rest = {name: value for name, value in scope.initializers.items() if name not in moved}
        return replace(scope, initializers=rest).with_nodes(_spliced(scope.nodes, chosen, new))

    def _grown(self, scope: NodeScope, at: int, place: str, around: "_Around") -> frozenset[int]:
        """Return a convex set around node `at`: next comes the neighbour whose own draw is the least."""
        known, wanted = links(scope.nodes), self.stream(place, "size").choice(_SIZES)
        chosen = frozenset((at,))
        for _ in range(2 * wanted):
            draws = {self.draw(place, scope.place_of(scope.nodes[other])): other for other in known.near(chosen)}
            for _, other in sorted(draws.items()):
                grown = known.closed(chosen | {other})
                if len(grown) <= wanted and all(self._admits(scope, scope.nodes[one], around) for one in grown):
                    chosen = grown
                    break
            else:
                break
        return chosen

    def _admits(self, scope: NodeScope, node: Node, around: "_Around") -> bool:
        return (
            around.taken.isdisjoint(filter(None, node.outputs))
            and _can_move(node, scope, around.types, around.model)
            and self._depth(scope, (node,)) <= self.depth
        )


@dataclass(frozen=True, slots=True)
class _Around:
    """The context of wrapping in one scope.

    `fixed` values are constants or structural, and `taken` are the results of nodes that have been wrapped already.
    """

    model: Model
    types: Mapping[str, ValueType]
    fixed: frozenset[str]
    names: NameSupply
    taken: set[str]


def depth_of(node: Node) -> int:
    """Return how deep bodies are nested in `node`: 0 without bodies."""
    return max((1 + max(map(depth_of, body.nodes), default=0) for body in node.subgraphs()), default=0)


def _can_move(node: Node, scope: NodeScope, types: Mapping[str, ValueType], model: Model) -> bool:
    """Tell whether `node` is deterministic, and If and Loop support its result types."""
    kinds = [types.get(name) for name in node.outputs if name]
    return (
        bool(kinds)
        and all(
            isinstance(kind, TensorType) and kind.dtype in PLAIN and all(gives(op, scope.opset, kind) for op in _BODIED)
            for kind in kinds
        )
        and pure((node,), model)
        and not any(name in scope.sparse for name in reads(node))
    )


def _with_output_types(scope: NodeScope, types: Mapping[str, ValueType]) -> NodeScope:
    """Return a body with the types of its outputs, because inference finds no shapes for the outputs of a Loop."""
    if scope.kind != "body":
        return scope
    outputs = tuple(info if info.type else replace(info, type=types.get(info.name)) for info in scope.outputs)
    return replace(scope, outputs=outputs)


def _used(scope: NodeScope) -> frozenset[str]:
    """Return the values that a node of `scope` reads or that are its outputs, because a body needs an output."""
    return frozenset(scope.output_names).union(*map(reads, scope.nodes))


_BODIED = ("If", "Loop")


def _used_outside(scope: NodeScope, chosen: frozenset[int]) -> tuple[str, ...]:
    """Return the results of the nodes `chosen` that others read or that are outputs of the scope, in order."""
    wanted = set(scope.output_names)
    for at, node in enumerate(scope.nodes):
        if at not in chosen:
            wanted.update(reads(node))
    return tuple(name for at in sorted(chosen) for name in scope.nodes[at].outputs if name and name in wanted)


def _own_constants(scope: NodeScope, nodes: tuple[Node, ...], chosen: frozenset[int]) -> dict[str, Tensor]:
    """Return the initialisers of `scope` that only `nodes` read."""
    read = {name for node in nodes for name in reads(node)}
    others = {name for at, node in enumerate(scope.nodes) if at not in chosen for name in reads(node)}
    free = read - others - scope.output_names - scope.given
    return {name: value for name, value in scope.initializers.items() if name in free}


def _spliced(nodes: tuple[Node, ...], chosen: frozenset[int], new: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return `nodes` with `new` in place of those `chosen`, in topological order."""
    last = max(chosen)
    kept: list[Node] = []
    for at, node in enumerate(nodes):
        if at == last:
            kept.extend(new)
        elif at not in chosen:
            kept.append(node)
    return toposort(Graph("", (), (), tuple(kept))).nodes
