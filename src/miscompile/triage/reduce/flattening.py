"""Flattening of control flow: a branch replaces its If, the iterations of a Loop or Scan follow one another.

Reductions ask for a single iteration or branch. The check against undefined behaviour asks for a graph without bodies,
in which it can read every value of every iteration.
Sources: https://onnx.ai/onnx/operators/onnx__If.html, onnx__Loop.html, onnx__Scan.html
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from miscompile.core.tensor import Tensor
from miscompile.graph.attributes import attributes
from miscompile.graph.edges import all_names
from miscompile.graph.model import Attribute, Graph, Node, TensorType, ValueInfo
from miscompile.graph.rename import NameSupply, redirect, refresh
from miscompile.triage.reduce.capture import Capture
from miscompile.triage.reduce.draft import Draft

CONTROL = frozenset({"If", "Loop", "Scan"})
MOST_TURNS = 16
_MOST_ROUNDS = 6

KnownValues = Mapping[str, Tensor]


@dataclass(slots=True)
class SplicedNodes:
    """Nodes and constants that replace a block, under construction; `results` are the new names of its outputs."""

    supply: NameSupply
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, Tensor] = field(default_factory=dict)
    results: list[str] = field(default_factory=list)

    def body(self, body: Graph, given: Sequence[str]) -> list[str]:
        """Add a copy of `body` on the values `given`; return its outputs."""
        names = {info.name: actual for info, actual in zip(body.inputs, given, strict=True)}
        for name, value in body.initializers.items():
            names[name] = self.constant(name, value)
        for node in body.nodes:
            names.update((name, self.supply.fresh(name)) for name in node.outputs if name)
        self.nodes += refresh(body.nodes, names, self.supply.fresh)
        return [names.get(info.name, info.name) for info in body.outputs]

    def constant(self, name: str, value: Tensor) -> str:
        """Add a constant and return its name."""
        fresh = self.supply.fresh(name)
        self.constants[fresh] = value
        return fresh

    def add(self, op: str, inputs: Sequence[str], given: Mapping[str, Attribute], name: str) -> str:
        """Add a node with one output and return its name."""
        fresh = self.supply.fresh(name)
        self.nodes.append(Node(op, tuple(inputs), (fresh,), given))
        return fresh

    def number(self, value: int | list[int]) -> str:
        """Add a constant of type int64."""
        return self.constant("n", Tensor("int64", np.array(value, np.int64)))

    def slice(self, value: str, place: int, axis: int) -> str:
        """Take one slice of `value` along `axis`, and remove the axis."""
        return self.add("Gather", (value, self.number(place)), attributes({"axis": axis}), "slice")

    def stacked(self, rows: Sequence[str], axis: int) -> str:
        """Stack `rows` along a new `axis`."""
        parts = [self.add("Unsqueeze", (row, self.number([axis])), {}, "row") for row in rows]
        return parts[0] if len(parts) == 1 else self.add("Concat", parts, attributes({"axis": axis}), "rows")


def is_block(node: Node) -> bool:
    """Tell whether a node is an If, Loop or Scan."""
    return node.op in CONTROL and not node.domain


def spliced(graph: Graph, place: int, splice: SplicedNodes) -> Graph:
    """Return `graph` with the splice in place of the node at `place`; the readers of its outputs read the results.

    A node of the body itself must produce each output of the body, so a result that none produces gets an Identity.
    """
    node = graph.nodes[place]
    names = {old: new for old, new in zip(node.outputs, splice.results, strict=False) if old}
    after = [redirect(other, names) for other in graph.nodes[place + 1 :]]
    nodes = [*graph.nodes[:place], *splice.nodes, *after]
    made = {name for other in nodes for name in other.outputs}
    outputs: dict[str, ValueInfo] = {}
    for info in graph.outputs:
        name = names.get(info.name, info.name)
        if name in outputs or (name not in made and name != info.name):
            name = splice.supply.fresh("same")
            nodes.append(Node("Identity", (names.get(info.name, info.name),), (name,)))
        outputs[name] = ValueInfo(name, info.type if name == info.name else None)
    constants = {**graph.initializers, **splice.constants}
    return replace(graph, nodes=tuple(nodes), outputs=tuple(outputs.values()), initializers=constants, types={})


def branch(node: Node, taken: str, supply: NameSupply) -> SplicedNodes:
    """Return the branch `taken` ("then_branch" or "else_branch") of an If."""
    splice = SplicedNodes(supply)
    splice.results = splice.body(node.attributes[taken].value, ())
    return splice


def loop_turns(node: Node, count: int, supply: NameSupply) -> SplicedNodes | None:
    """Return `count` iterations of a Loop one after the other; None for 0 when the loop has scan outputs."""
    body: Graph = node.attributes["body"].value
    splice = SplicedNodes(supply)
    carried = list(node.inputs[2:])
    rows: list[list[str]] = [[] for _ in body.outputs[1 + len(carried) :]]
    if count == 0 and any(node.outputs[len(carried) :]):
        return None
    on = splice.constant("on", Tensor("bool", np.array(True)))
    for turn in range(count):
        found = splice.body(body, (splice.number(turn), on, *carried))
        carried = found[1 : 1 + len(carried)]
        for row, value in zip(rows, found[1 + len(carried) :], strict=True):
            row.append(value)
    splice.results = carried
    for name, row in zip(node.outputs[len(carried) :], rows, strict=False):
        splice.results.append(splice.stacked(row, 0) if name else "")
    return splice


def scan_turns(node: Node, length: int, supply: NameSupply) -> SplicedNodes | None:
    """Return the iterations of a Scan of `length` slices one after the other; None when there are none."""
    if length == 0:
        return None
    splice = SplicedNodes(supply)
    count = int(node.attributes["num_scan_inputs"].value)
    body: Graph = node.attributes["body"].value
    states, scanned = list(node.inputs[:-count]), node.inputs[-count:]
    outs = len(body.outputs) - len(states)
    rows: list[list[str]] = [[] for _ in range(outs)]
    axes, turned = settings(node, "scan_input_axes", count), settings(node, "scan_input_directions", count)
    for turn in range(length):
        places = [length - 1 - turn if back else turn for back in turned]
        slices = [splice.slice(*each) for each in zip(scanned, places, axes, strict=True)]
        found = splice.body(body, (*states, *slices))
        states = found[: len(states)]
        for row, value in zip(rows, found[len(states) :], strict=True):
            row.append(value)
    splice.results = states
    backs = settings(node, "scan_output_directions", outs)
    for row, axis, back in zip(rows, settings(node, "scan_output_axes", outs), backs, strict=True):
        splice.results.append(splice.stacked(row[::-1] if back else row, axis))
    return splice


def settings(node: Node, name: str, count: int) -> tuple[int, ...]:
    """Return an attribute of a Scan that is a list of numbers, with its default."""
    attribute = node.attributes.get(name)
    return (0,) * count if attribute is None else tuple(attribute.value)


def flattened(draft: Draft, capture: Capture) -> Iterator[Draft]:
    """Yield a draft without bodies for each feed where possible, with the iterations that this feed has.

    Bodies of operators other than If, Loop and Scan stay; so do loops of more than `MOST_TURNS` iterations.
    """
    for feed in draft.feeds or ({},):
        single: Draft | None = replace(draft, feeds=(feed,))
        for _ in range(_MOST_ROUNDS):
            if single is None or not any(is_block(node) for node in single.graph.nodes):
                break
            single = _written_out(single, capture)
        if single is not None:
            yield single


def _written_out(draft: Draft, capture: Capture) -> Draft | None:
    """Flatten every block of the main graph; None when one cannot be flattened."""
    counted, counters = _counting(draft)
    known = capture(counted)[0]
    supply = NameSupply(all_names(counted.graph))
    graph = draft.graph
    for node in [node for node in graph.nodes if is_block(node)]:
        place = next(place for place, other in enumerate(graph.nodes) if other.outputs == node.outputs)
        splice = _splice(graph.nodes[place], node, known, counters, supply)
        if splice is None:
            return None
        graph = spliced(graph, place, splice)
    return replace(draft, model=replace(draft.model, graph=graph))


def _splice(
    node: Node, seen: Node, known: KnownValues, counters: Mapping[str, str], supply: NameSupply
) -> SplicedNodes | None:
    """Flatten `node`, a copy of the node `seen` that may read other names; `known` are the values of `seen`."""
    if node.op == "If":
        condition = known.get(seen.inputs[0])
        if condition is None or condition.array.size != 1:
            return None
        return branch(node, "then_branch" if condition.array.reshape(-1)[0] else "else_branch", supply)
    if node.op == "Loop":
        turns = known.get(counters[_label(seen)])
        count = None if turns is None else turns.shape[0]
        return None if count is None or count > MOST_TURNS else loop_turns(node, count, supply)
    count = int(node.attributes["num_scan_inputs"].value)
    first = known.get(seen.inputs[-count])
    if first is None:
        return None
    length = first.shape[settings(node, "scan_input_axes", count)[0]]
    return scan_turns(node, length, supply) if length <= MOST_TURNS else None


def _label(node: Node) -> str:
    return next(filter(None, node.outputs))


def _counting(draft: Draft) -> tuple[Draft, dict[str, str]]:
    """Make every Loop of the main graph output its iteration numbers; return their names by first output."""
    supply = NameSupply(all_names(draft.graph))
    counters: dict[str, str] = {}
    nodes = []
    for node in draft.graph.nodes:
        if node.op == "Loop" and not node.domain:
            body: Graph = node.attributes["body"].value
            number = supply.fresh("turn")
            counters[_label(node)] = supply.fresh("turns")
            more = Node("Identity", (body.inputs[0].name,), (number,))
            outputs = (*body.outputs, ValueInfo(number, TensorType("int64", ())))
            given = {
                **node.attributes,
                "body": Attribute("graph", replace(body, nodes=(*body.nodes, more), outputs=outputs)),
            }
            results = (*node.outputs, *("" for _ in range(len(body.outputs) - 1 - len(node.outputs))))
            node = replace(node, attributes=given, outputs=(*results, counters[_label(node)]))
        nodes.append(node)
    return draft.with_nodes(nodes), counters
