"""Producers and users of values, including uses inside subgraph bodies, and the topological order that follows."""

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from miscompile.base.errors import ModelError
from miscompile.graph.model import Attribute, Graph, Node


def reads(node: Node) -> Iterator[str]:
    """Yield every value that `node` uses, with repetition: its inputs, then the values that each body captures.

    Captured values are sorted, because the order of a set of names differs from process to process.
    """
    for name in node.inputs:
        if name:
            yield name
    for body in node.subgraphs():
        yield from sorted(captured(body))


def defined(graph: Graph) -> set[str]:
    """Return the values that `graph` itself defines: inputs, initialisers and node outputs, without those of its
    bodies."""
    names = {info.name for info in graph.inputs}
    names.update(graph.initializers, graph.sparse_initializers)
    for node in graph.nodes:
        names.update(node.outputs)
    names.discard("")
    return names


def captured(graph: Graph) -> set[str]:
    """Return the outer values that `graph` or its bodies use; a complete main graph has none."""
    used = {info.name for info in graph.outputs}
    for node in graph.nodes:
        used.update(reads(node))
    return used - defined(graph)


def producers(graph: Graph) -> dict[str, int]:
    """Return the index in `graph.nodes` of the producer of each value; inputs and initialisers have no producer."""
    return {name: place for place, node in enumerate(graph.nodes) for name in node.outputs if name}


def users(graph: Graph) -> dict[str, tuple[int, ...]]:
    """Return the indices of the nodes that use each value, in bodies too; a graph output does not count as a use."""
    found: dict[str, dict[int, None]] = {}
    for place, node in enumerate(graph.nodes):
        for name in reads(node):
            found.setdefault(name, {})[place] = None
    return {name: tuple(places) for name, places in found.items()}


def all_names(graph: Graph) -> set[str]:
    """Return every value name that occurs in `graph` or in a body at any depth."""
    names = {info.name for info in (*graph.inputs, *graph.outputs)}
    names.update(graph.initializers, graph.sparse_initializers, graph.types, names_in(graph.nodes))
    return names


def names_in(nodes: Iterable[Node]) -> set[str]:
    """Return every value name that occurs in `nodes` or in their bodies at any depth."""
    names: set[str] = set()
    for node in nodes:
        names.update(node.inputs, node.outputs)
        for body in node.subgraphs():
            names |= all_names(body)
    names.discard("")
    return names


def toposort(graph: Graph) -> Graph:
    """Return `graph` in topological order; nodes that do not depend on each other keep their order.

    The order inside bodies does not change. Raises ModelError when nodes form a cycle.
    """
    made = producers(graph)
    waits: list[int] = []
    successors: dict[int, list[int]] = {}
    for place, node in enumerate(graph.nodes):
        needed = {made[name] for name in reads(node) if name in made}
        waits.append(len(needed))
        for other in needed:
            successors.setdefault(other, []).append(place)
    ready = [place for place, count in enumerate(waits) if count == 0]
    order: list[int] = []
    while ready:
        place = heapq.heappop(ready)
        order.append(place)
        for other in successors.get(place, ()):
            waits[other] -= 1
            if waits[other] == 0:
                heapq.heappush(ready, other)
    if len(order) < len(graph.nodes):
        stuck = next(node for place, node in enumerate(graph.nodes) if waits[place])
        raise ModelError(f"the values that {stuck.op} makes ({', '.join(stuck.outputs)}) depend on themselves")
    if order == list(range(len(order))):
        return graph
    return replace(graph, nodes=tuple(graph.nodes[place] for place in order))


def map_bodies(node: Node, change: Callable[[Graph], Graph]) -> Node:
    """Return `node` with `change` applied to every body; the same object if no body changes."""
    attributes = dict(node.attributes)
    changed = False
    for name, attribute in node.attributes.items():
        if attribute.kind not in ("graph", "graphs"):
            continue
        single = attribute.kind == "graph"
        old = (attribute.value,) if single else attribute.value
        new = tuple(map(change, old))
        if any(after is not before for after, before in zip(new, old, strict=True)):
            attributes[name] = Attribute(attribute.kind, new[0] if single else new)
            changed = True
    return replace(node, attributes=attributes) if changed else node
