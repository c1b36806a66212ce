"""Fewer nodes in the middle: the readers of a node's result read one of its operands instead."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from miscompile.base.errors import ModelError
from miscompile.graph.edges import map_bodies
from miscompile.graph.model import Graph, Node, ValueType
from miscompile.graph.rename import redirect
from miscompile.graph.typing import value_types
from miscompile.triage.reduce.draft import Draft, rewired

TypesOf = Callable[[Draft], Mapping[str, ValueType]]
"""Returns the types of a draft's values, as far as they are known. May raise ModelError."""


def inferred(draft: Draft) -> Mapping[str, ValueType]:
    """Return the types that onnx's shape inference finds. Raises ModelError for an invalid model."""
    return value_types(draft.model)


@dataclass(frozen=True, slots=True)
class Bypass:
    """Bypasses nodes whose first result has the type of an operand: many at once, then half as many, then each."""

    types_of: TypesOf = inferred

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts in which nodes are bypassed."""
        try:
            types = self.types_of(draft)
        except ModelError:
            return
        pairs = [pair for node in draft.graph.nodes if (pair := _same_type(node, types)) is not None]
        size = len(pairs)
        while size >= 1:
            for start in range(0, len(pairs), size):
                yield rewired(draft, dict(pairs[start : start + size]))
            size //= 2


@dataclass(frozen=True, slots=True)
class Shortcut:
    """Bypasses single nodes by any operand, whatever its type; inference rejects the candidates with wrong types."""

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts in which one node is bypassed."""
        for node in reversed(draft.graph.nodes):
            for name in dict.fromkeys(filter(None, node.inputs)):
                if node.outputs:
                    yield rewired(draft, {node.outputs[0]: name})


@dataclass(frozen=True, slots=True)
class BypassInBodies:
    """Removes single nodes of the bodies of If, Loop and Scan."""

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts in which one body has one node less."""
        nodes = draft.graph.nodes
        for place, node in enumerate(nodes):
            for smaller in _with_smaller_body(node):
                yield draft.with_nodes((*nodes[:place], smaller, *nodes[place + 1 :]))


@dataclass(frozen=True, slots=True)
class SameOperand:
    """Shares operands, and removes optional ones, so that fewer values are needed.

    Each operand is replaced by the first input of the graph with its type, or by another operand of the same
    node; a left-out operand is the empty name at the end of the list.
    """

    types_of: TypesOf = inferred

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts in which one operand of one node is another."""
        try:
            types = self.types_of(draft)
        except ModelError:
            return
        nodes, leaves = draft.graph.nodes, [info.name for info in draft.graph.inputs]
        for at, node in enumerate(nodes):
            for place, name in enumerate(node.inputs):
                for other in _stand_ins(node, place, name, leaves, types):
                    inputs = (*node.inputs[:place], other, *node.inputs[place + 1 :])
                    changed = replace(node, inputs=_trimmed(inputs))
                    yield draft.with_nodes((*nodes[:at], changed, *nodes[at + 1 :]))


def _same_type(node: Node, types: Mapping[str, ValueType]) -> tuple[str, str] | None:
    if not node.outputs:
        return None
    made = types.get(node.outputs[0])
    name = next((name for name in node.inputs if name and types.get(name) == made), None)
    return None if made is None or name is None else (node.outputs[0], name)


def _with_smaller_body(node: Node) -> Iterator[Node]:
    for index, body in enumerate(node.subgraphs()):
        for place, inner in enumerate(body.nodes):
            for name in dict.fromkeys(filter(None, inner.inputs)):
                smaller = _without(body, place, inner.outputs[0], name)
                yield _with_body(node, index, smaller)


def _with_body(node: Node, index: int, body: Graph) -> Node:
    bodies = list(node.subgraphs())
    bodies[index] = body
    rest = iter(bodies)
    return map_bodies(node, lambda _: next(rest))


def _without(body: Graph, place: int, old: str, new: str) -> Graph:
    nodes = [redirect(node, {old: new}) for at, node in enumerate(body.nodes) if at != place]
    outputs = tuple(replace(info, name=new, type=None) if info.name == old else info for info in body.outputs)
    return replace(body, nodes=tuple(nodes), outputs=outputs, types={})


def _stand_ins(
    node: Node, place: int, name: str, leaves: Sequence[str], types: Mapping[str, ValueType]
) -> Iterator[str]:
    if not name:
        return
    kind = types.get(name)
    choices = dict.fromkeys([*leaves, *node.inputs[:place]])
    yield from (other for other in choices if other and other != name and types.get(other) == kind)
    if place > 0:
        yield ""


def _trimmed(inputs: tuple[str, ...]) -> tuple[str, ...]:
    while inputs and not inputs[-1]:
        inputs = inputs[:-1]
    return inputs
