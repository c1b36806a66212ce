"""Reductions of control flow: one iteration of a loop, fewer inputs and outputs of a block, smaller bodies."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from miscompile.core.tensor import Tensor
from miscompile.graph.edges import all_names, map_bodies
from miscompile.graph.model import Attribute, Graph, Node, TensorType, ValueInfo
from miscompile.graph.rename import NameSupply, redirect
from miscompile.triage.reduce.capture import Capture
from miscompile.triage.reduce.draft import Draft
from miscompile.triage.reduce.flattening import (
    SplicedNodes,
    branch,
    is_block,
    loop_turns,
    scan_turns,
    settings,
    spliced,
)

Item = TypeVar("Item")

Edit = Callable[[Graph, int, NameSupply], Iterator[Graph]]
"""Proposes graphs in which the block at an index among the nodes is smaller or gone; `NameSupply` gives names."""


@dataclass(frozen=True, slots=True)
class InnerBranch:
    """Replaces an If that stands in a body by one of its branches; `OneBranch` does so in the main graph."""

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts in which one inner If is a branch of it."""
        yield from _in_bodies(draft, _branches)


@dataclass(frozen=True, slots=True)
class SameBranch:
    """Makes one branch of an If a copy of the other, at any depth, for bugs that need an If but not its choice."""

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts in which both branches of one If are alike."""
        yield from _everywhere(draft, _alike)


@dataclass(frozen=True, slots=True)
class OneTurn:
    """Replaces a Loop or Scan by its body, run once on its initial values, at any depth.

    The slices of a Scan in the main graph become inputs, if `capture` gives their values, because nodes that compute
    the slices would make the graph larger.
    """

    capture: Capture

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts in which one loop is replaced by a single iteration."""
        for place, node in enumerate(draft.graph.nodes):
            if node.op == "Scan" and not node.domain:
                yield from self._sliced(draft, place, node)
        yield from _everywhere(draft, _once)

    def _sliced(self, draft: Draft, place: int, node: Node) -> Iterator[Draft]:
        count = int(node.attributes["num_scan_inputs"].value)
        axes = settings(node, "scan_input_axes", count)
        turned = settings(node, "scan_input_directions", count)
        seen = self.capture(draft)
        scanned = node.inputs[-count:]
        if not seen or any(name not in known or not known[name].array.size for known in seen for name in scanned):
            return
        supply = NameSupply(all_names(draft.graph))
        names = [supply.fresh("slice") for _ in scanned]
        feeds, infos = list(draft.feeds), []
        for name, value, axis, back in zip(names, scanned, axes, turned, strict=True):
            slices = [_slice(known[value], axis, last=bool(back)) for known in seen]
            if len({(each.dtype, each.shape) for each in slices}) > 1:
                return
            infos.append(ValueInfo(name, TensorType(slices[0].dtype, slices[0].shape)))
            feeds = [{**feed, name: each} for feed, each in zip(feeds, slices, strict=True)]
        splice = SplicedNodes(supply)
        splice.results = splice.body(node.attributes["body"].value, (*node.inputs[:-count], *names))
        graph = spliced(draft.graph, place, splice)
        yield Draft(replace(draft.model, graph=replace(graph, inputs=(*graph.inputs, *infos))), tuple(feeds))


@dataclass(frozen=True, slots=True)
class FewerResults:
    """Removes results of an If, Loop or Scan, and carried values of loops, whose bodies then read initial values."""

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts in which one block has one result less."""
        yield from _everywhere(draft, _fewer_results)


@dataclass(frozen=True, slots=True)
class PlainerLoops:
    """Makes loops run twice, then once, without a condition, and Scans run forwards along first axes."""

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts in which one loop is plainer."""
        yield from _everywhere(draft, _plainer)


@dataclass(frozen=True, slots=True)
class BypassDeeper:
    """Removes single nodes of bodies within bodies; `BypassInBodies` does so in the bodies of the main graph."""

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts in which one inner body has one node less."""
        supply = NameSupply(all_names(draft.graph))
        for place, node in enumerate(draft.graph.nodes):
            for index, body in enumerate(node.subgraphs()):
                for inner in _graphs(body, _bypassed, supply, outermost=False):
                    yield _with(draft, place, _with_body(node, index, inner))


def _slice(value: Tensor, axis: int, *, last: bool) -> Tensor:
    return Tensor(value.dtype, np.ascontiguousarray(np.take(value.array, -1 if last else 0, axis)))


def _with(draft: Draft, place: int, node: Node) -> Draft:
    nodes = draft.graph.nodes
    return draft.with_nodes((*nodes[:place], node, *nodes[place + 1 :]))


def _with_body(node: Node, index: int, body: Graph) -> Node:
    bodies = list(node.subgraphs())
    bodies[index] = body
    rest = iter(bodies)
    return map_bodies(node, lambda _: next(rest))


def _everywhere(draft: Draft, edit: Edit) -> Iterator[Draft]:
    """Yield the drafts that `edit` makes of the main graph, then those that it makes of bodies at any depth."""
    supply = NameSupply(all_names(draft.graph))
    for place, node in enumerate(draft.graph.nodes):
        if is_block(node):
            for graph in edit(draft.graph, place, supply):
                yield replace(draft, model=replace(draft.model, graph=graph))
    yield from _in_bodies(draft, edit)


def _in_bodies(draft: Draft, edit: Edit) -> Iterator[Draft]:
    supply = NameSupply(all_names(draft.graph))

    def each(graph: Graph, names: NameSupply) -> Iterator[Graph]:
        for place, node in enumerate(graph.nodes):
            if is_block(node):
                yield from edit(graph, place, names)

    for place, node in enumerate(draft.graph.nodes):
        for index, body in enumerate(node.subgraphs()):
            for inner in _graphs(body, each, supply, outermost=True):
                yield _with(draft, place, _with_body(node, index, inner))


def _graphs(
    body: Graph, change: Callable[[Graph, NameSupply], Iterator[Graph]], supply: NameSupply, *, outermost: bool
) -> Iterator[Graph]:
    """Yield `body` with one change in itself, or in one of the bodies within it."""
    if outermost:
        yield from change(body, supply)
    for place, node in enumerate(body.nodes):
        for index, inner in enumerate(node.subgraphs()):
            for changed in _graphs(inner, change, supply, outermost=True):
                nodes = (*body.nodes[:place], _with_body(node, index, changed), *body.nodes[place + 1 :])
                yield replace(body, nodes=nodes)


def _branches(graph: Graph, place: int, supply: NameSupply) -> Iterator[Graph]:
    node = graph.nodes[place]
    if node.op == "If":
        for taken in ("then_branch", "else_branch"):
            yield spliced(graph, place, branch(node, taken, supply))


def _alike(graph: Graph, place: int, supply: NameSupply) -> Iterator[Graph]:
    node = graph.nodes[place]
    if node.op != "If":
        return
    for kept, other in (("then_branch", "else_branch"), ("else_branch", "then_branch")):
        copied = branch(node, kept, supply)
        outputs = tuple(ValueInfo(name, None) for name in copied.results)
        body: Graph = node.attributes[other].value
        body = replace(body, nodes=tuple(copied.nodes), initializers=copied.constants, outputs=outputs, types={})
        changed = _with_bodies(node, {other: body})
        yield replace(graph, nodes=(*graph.nodes[:place], changed, *graph.nodes[place + 1 :]), types={})


def _once(graph: Graph, place: int, supply: NameSupply) -> Iterator[Graph]:
    """Yield one iteration in place of a loop: rows as they are, then rows with the axis that stacking would add."""
    node = graph.nodes[place]
    if node.op == "If":
        return
    if node.op == "Loop":
        splice = SplicedNodes(supply)
        body: Graph = node.attributes["body"].value
        on = splice.constant("on", Tensor("bool", np.array(True)))
        splice.results = splice.body(body, (splice.number(0), on, *node.inputs[2:]))[1:]
        yield spliced(graph, place, splice)
    whole = loop_turns(node, 1, supply) if node.op == "Loop" else scan_turns(node, 1, supply)
    if whole is not None:
        yield spliced(graph, place, whole)


def _fewer_results(graph: Graph, place: int, supply: NameSupply) -> Iterator[Graph]:
    node = graph.nodes[place]
    if node.op == "If":
        for index in range(len(node.outputs)) if len(node.outputs) > 1 else ():
            bodies = {name: _without_output(attribute.value, index) for name, attribute in node.attributes.items()}
            yield from _replaced(graph, place, _with_bodies(node, bodies), index, None, supply)
        return
    body: Graph = node.attributes["body"].value
    ahead = 2 if node.op == "Loop" else 0
    before = 1 if node.op == "Loop" else 0
    scanned = int(node.attributes["num_scan_inputs"].value) if node.op == "Scan" else 0
    carried = len(node.inputs) - ahead - scanned
    if len(body.outputs) - before < 2:
        return
    for index in range(len(body.outputs) - before):
        if index < carried:
            start = node.inputs[ahead + index]
            names = {body.inputs[ahead + index].name: start}
            smaller = replace(
                _without_output(body, before + index),
                inputs=_without(body.inputs, ahead + index),
                nodes=tuple(redirect(inner, names) for inner in body.nodes),
            )
            fewer = replace(_with_bodies(node, {"body": smaller}), inputs=_without(node.inputs, ahead + index))
            yield from _replaced(graph, place, fewer, index, start, supply)
        else:
            smaller = _without_output(body, before + index)
            fewer = _without_row(_with_bodies(node, {"body": smaller}), index - carried)
            yield from _replaced(graph, place, fewer, index, None, supply)


def _without_output(body: Graph, index: int) -> Graph:
    return replace(body, outputs=_without(body.outputs, index))


def _without(items: Sequence[Item], index: int) -> tuple[Item, ...]:
    return (*items[:index], *items[index + 1 :])


def _with_bodies(node: Node, bodies: dict[str, Graph]) -> Node:
    return replace(node, attributes={**node.attributes, **{k: Attribute("graph", v) for k, v in bodies.items()}})


def _without_row(node: Node, index: int) -> Node:
    """Drop the attributes of a Scan for a removed scan output."""
    given = dict(node.attributes)
    for name in ("scan_output_axes", "scan_output_directions"):
        if name in given:
            given[name] = Attribute("ints", _without(given[name].value, index))
    return replace(node, attributes=given)


def _replaced(
    graph: Graph, place: int, node: Node, index: int, stand_in: str | None, supply: NameSupply
) -> Iterator[Graph]:
    """Replace a node by `node`, which lacks the output at `index`.

    Its readers read `stand_in` instead, if there is one. Without a stand-in, no node may read that value; an output of
    the main graph is removed.
    """
    old = graph.nodes[place]
    name = old.outputs[index] if index < len(old.outputs) else ""
    node = replace(node, outputs=_without(old.outputs, index) if index < len(old.outputs) else old.outputs)
    if not any(node.outputs):
        return
    changed = replace(graph, nodes=(*graph.nodes[:place], node, *graph.nodes[place + 1 :]), types={})
    outputs = tuple(info for info in graph.outputs if info.name != name)
    if outputs and len(outputs) < len(graph.outputs):
        yield replace(changed, outputs=outputs)
    if stand_in is None or not name:
        yield changed
    else:
        splice = SplicedNodes(supply, [node], {}, [stand_in if other == name else other for other in old.outputs])
        yield spliced(graph, place, splice)


def _plainer(graph: Graph, place: int, supply: NameSupply) -> Iterator[Graph]:
    node = graph.nodes[place]
    for plainer, constants in _plainer_nodes(node, supply):
        nodes = (*graph.nodes[:place], plainer, *graph.nodes[place + 1 :])
        yield replace(graph, nodes=nodes, initializers={**graph.initializers, **constants}, types={})


def _plainer_nodes(node: Node, supply: NameSupply) -> Iterator[tuple[Node, dict[str, Tensor]]]:
    if node.op == "Loop":
        body: Graph = node.attributes["body"].value
        for count in (1, 2):
            trips = supply.fresh("trips")
            constants = {trips: Tensor("int64", np.array(count, np.int64))}
            yield replace(node, inputs=(trips, "", *node.inputs[2:])), constants
            on = supply.fresh("on")
            handed = Node("Identity", (body.inputs[1].name,), (on,))
            outputs = (ValueInfo(on, TensorType("bool", ())), *body.outputs[1:])
            endless = replace(body, nodes=(*body.nodes, handed), outputs=outputs)
            yield replace(_with_bodies(node, {"body": endless}), inputs=(trips, "", *node.inputs[2:])), constants
        if len(node.inputs) > 1 and node.inputs[1]:
            yield replace(node, inputs=(node.inputs[0], "", *node.inputs[2:])), {}
    elif node.op == "Scan":
        for name in node.attributes:
            if name.startswith("scan_"):
                yield replace(node, attributes={k: v for k, v in node.attributes.items() if k != name}), {}


def _bypassed(body: Graph, supply: NameSupply) -> Iterator[Graph]:
    """Yield `body` without one of its nodes, whose first result is one of its operands then."""
    for place, node in enumerate(body.nodes):
        for name in dict.fromkeys(filter(None, node.inputs)):
            yield spliced(body, place, SplicedNodes(supply, [], {}, [name]))
