"""Leaves: the tensors that a draft starts from (fed inputs and initialisers), read and changed in one way."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from miscompile.core.case import Dim
from miscompile.core.tensor import Tensor
from miscompile.graph.edges import map_bodies
from miscompile.graph.model import Graph, Node, TensorType, ValueInfo
from miscompile.ops.operand_roles import structural_operands
from miscompile.ops.spec import Role
from miscompile.triage.reduce.draft import Draft, loosened

Change = Callable[[str, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Leaf:
    """One leaf; `value` is that of the first feed when it is an input."""

    name: str
    value: Tensor
    fed: bool


def leaves(draft: Draft) -> list[Leaf]:
    """Return the leaves of the main graph, inputs first, in the order of the model."""
    first: Mapping[str, Tensor] = draft.feeds[0] if draft.feeds else {}
    found = [Leaf(info.name, first[info.name], True) for info in draft.fed() if info.name in first]
    return found + [Leaf(name, value, False) for name, value in draft.graph.initializers.items()]


def all_leaves(draft: Draft) -> list[Leaf]:
    """Return the leaves of the main graph, and the initialisers of bodies at any depth."""
    return leaves(draft) + [Leaf(name, value, False) for name, value in body_constants(draft.graph)]


def body_constants(graph: Graph) -> Iterator[tuple[str, Tensor]]:
    """Yield the initialisers of the bodies in `graph`, at any depth, by name."""
    for node in graph.nodes:
        for body in node.subgraphs():
            yield from body.initializers.items()
            yield from body_constants(body)


def changed(draft: Draft, names: set[str], change: Change) -> Draft:
    """Return the draft with `change(name, value)` in place of the leaves in `names`, in every feed; types follow.

    Initialisers of bodies are leaves as well.
    """
    graph = draft.graph
    feeds = tuple(
        {name: change(name, value) if name in names else value for name, value in feed.items()} for feed in draft.feeds
    )
    graph = _with_constants(graph, names, change)
    constants = graph.initializers
    now = {**constants, **(feeds[0] if feeds else {})}
    inputs = tuple(_info(info, now[info.name]) if info.name in names & now.keys() else info for info in graph.inputs)
    model = replace(draft.model, graph=loosened(replace(graph, inputs=inputs, types={})))
    return Draft(model, feeds)


def _with_constants(graph: Graph, names: set[str], change: Change) -> Graph:
    constants = {name: change(name, value) if name in names else value for name, value in graph.initializers.items()}
    nodes = tuple(map_bodies(node, lambda body: _with_constants(body, names, change)) for node in graph.nodes)
    return replace(graph, nodes=nodes, initializers=constants)


def structural(draft: Draft) -> set[str]:
    """Return the names of leaves whose elements determine shapes (targets of Reshape, axes of reductions, pads)."""
    return operands_with(draft, "shape")


def operands_with(draft: Draft, *roles: Role) -> set[str]:
    """Return the names of values that a node, of a body as well, reads as an operand with one of `roles`."""
    places = structural_operands(*roles)
    return {
        name
        for node in _nodes(draft.graph)
        for place, name in enumerate(node.inputs)
        if place in places.get(node.op, ())
    }


def _nodes(graph: Graph) -> Iterator[Node]:
    """Yield the nodes of a graph and of its bodies at any depth."""
    for node in graph.nodes:
        yield node
        for body in node.subgraphs():
            yield from _nodes(body)


def _info(info: ValueInfo, value: Tensor) -> ValueInfo:
    """Give an input the type of its value; a symbolic size stays symbolic, because the bug may depend on it."""
    declared = info.type.shape if isinstance(info.type, TensorType) else None
    shape: tuple[Dim, ...] = value.shape
    if declared is not None and len(declared) == len(shape):
        shape = tuple(size if isinstance(known, int) else known for known, size in zip(declared, shape, strict=True))
    return ValueInfo(info.name, TensorType(value.dtype, shape))
