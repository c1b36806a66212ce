"""The draft: a case in a form that reductions can edit, and the conversion back to a case."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from onnx import defs

from miscompile.base.digest import digest_bytes
from miscompile.core.case import Case, Feed, Port, Program
from miscompile.core.tensor import Tensor
from miscompile.graph.bodies import CONTROL, typing_of
from miscompile.graph.edges import map_bodies, reads
from miscompile.graph.emit import emit, to_program
from miscompile.graph.model import Graph, Model, Node, ValueInfo
from miscompile.graph.prune import prune
from miscompile.graph.read import read
from miscompile.graph.rename import redirect
from miscompile.graph.typing import value_types
from miscompile.ops.registry import schema

LOOP_CONTROLS = 2
"""Inputs of a Loop's body that are no data: the number of the iteration, and the condition."""

Reprogram = Callable[[Model, Feed], Program]
"""Makes the program of a model, and marks the outputs that are exact on the feed.

May raise a MiscompileError for a model that is not well defined on that feed; the candidate is then refused.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A model with its feeds by input name. Reductions make new drafts; a draft is never changed in place."""

    model: Model
    feeds: tuple[Mapping[str, Tensor], ...]

    @property
    def graph(self) -> Graph:
        """The main graph."""
        return self.model.graph

    @property
    def digest(self) -> str:
        """Digest of model and feeds."""
        parts = [emit(self.model)]
        for feed in self.feeds:
            parts.append(b"feed")  # a program without inputs may be run several times
            for name, value in feed.items():
                shape = ",".join(map(str, value.shape))
                parts += [f"{name}:{value.dtype}[{shape}]".encode(), value.array.tobytes()]
        return digest_bytes(*parts)

    def fed(self) -> tuple[ValueInfo, ...]:
        """Inputs that are fed: those without a default."""
        return tuple(info for info in self.graph.inputs if info.name not in self.graph.initializers)

    def with_graph(self, **changes: Any) -> "Draft":  # noqa: ANN401 - fields of Graph
        """Return the draft with fields of its main graph replaced."""
        return replace(self, model=replace(self.model, graph=replace(self.graph, **changes)))

    def with_nodes(self, nodes: Iterable[Node]) -> "Draft":
        """Return the draft with these nodes in its main graph."""
        return self.with_graph(nodes=tuple(nodes))


def take_apart(case: Case) -> Draft:
    """Return `case` as a draft. Raises ModelError when its program is no readable ONNX model."""
    model = read(case.program.payload)
    names = [port.name for port in case.program.inputs]
    return Draft(model, tuple(dict(zip(names, feed, strict=True)) for feed in case.feeds))


def put_together(draft: Draft, reprogram: Reprogram, recipe: Mapping[str, Any]) -> Case:
    """Return the case of `draft`. An output counts as exact only if it is exact on every feed.

    Raises the MiscompileErrors of `reprogram`.
    """
    names = [info.name for info in draft.fed()]
    feeds = tuple(tuple(feed[name] for name in names) for feed in draft.feeds)
    programs = [reprogram(draft.model, feed) for feed in feeds or ((),)]
    outputs = tuple(_agreed(ports) for ports in zip(*(program.outputs for program in programs), strict=True))
    return Case(replace(programs[0], outputs=outputs), feeds, recipe)


def inexact(model: Model, feed: Feed) -> Program:
    """The default Reprogram: marks no output as exact."""
    del feed
    return to_program(model)


def _agreed(ports: tuple[Port, ...]) -> Port:
    return ports[0]._replace(exact=all(port.exact for port in ports))


def tidy(draft: Draft) -> Draft:
    """Return the draft without the parts that its outputs do not need, and with newly inferred output types.

    Nodes, trailing optional results, initialisers, inputs with their feeds, functions, opset imports and recorded
    inner types go. Raises ModelError when the graph is inconsistent.
    """
    small = needed(draft)
    return replace(small, model=_retyped(small.model))


def needed(draft: Draft) -> Draft:
    """Return the draft without the parts that its outputs do not need, as `tidy` does, with the outputs' old types."""
    model = prune(draft.model, inputs=True)
    wanted = {info.name for info in model.graph.outputs}.union(*(reads(node) for node in model.graph.nodes))
    nodes = tuple(_without_unread(node, wanted, model.opset) for node in model.graph.nodes)
    domains = {"", "ai.onnx"}.union(_domains(nodes), *(_domains(function.nodes) for function in model.functions))
    opsets = {name: version for name, version in model.opsets.items() if name in domains}
    model = replace(model, opsets=opsets, graph=replace(model.graph, nodes=nodes, types={}))
    names = {info.name for info in model.graph.inputs}
    feeds = tuple({name: value for name, value in feed.items() if name in names} for feed in draft.feeds)
    return Draft(model, feeds)


def _domains(nodes: Iterable[Node]) -> set[str]:
    found = set()
    for node in nodes:
        found.add(node.domain)
        for body in node.subgraphs():
            found |= _domains(body.nodes)
    return found


def _without_unread(node: Node, wanted: set[str], opset: int) -> Node:
    """Remove unused trailing outputs of a node, where the operator makes them optional.

    An operator with bodies has as many results as its bodies, and a variadic operator as many as the node lists.
    """
    outputs = node.outputs
    form = schema(node.op, opset, node.domain)
    if form is None or any(True for _ in node.subgraphs()):
        return node
    variadic = any(formal.option == defs.OpSchema.FormalParameterOption.Variadic for formal in form.outputs)
    least = len(outputs) if variadic else max(1, form.min_output)
    while len(outputs) > least and outputs[-1] not in wanted:
        outputs = outputs[:-1]
    return node if outputs is node.outputs else replace(node, outputs=outputs)


def _retyped(model: Model) -> Model:
    """Infer the outputs' types anew, because an edit may have changed them; keep the old type where inference fails
    (outputs of foreign operators)."""
    untyped = tuple(ValueInfo(info.name, None) for info in model.graph.outputs)
    bare = replace(model, graph=replace(model.graph, outputs=untyped))
    blocks = any(node.op in CONTROL and not node.domain for node in model.graph.nodes)
    known = typing_of(bare).types if blocks else value_types(bare)  # the whole model's inference forgets their shapes
    outputs = tuple(ValueInfo(info.name, known.get(info.name, info.type)) for info in model.graph.outputs)
    return replace(model, graph=replace(model.graph, outputs=outputs))


def loosened(graph: Graph) -> Graph:
    """Return `graph` with no declared types in its bodies, for edits that change shapes or element types.

    The counter and the condition of a Loop keep theirs: no edit changes them, and compilers want them declared.
    """
    return replace(graph, nodes=tuple(map(_loosened_node, graph.nodes)))


def _loosened_node(node: Node) -> Node:
    kept = LOOP_CONTROLS if node.op == "Loop" and not node.domain else 0
    return map_bodies(node, lambda body: _loosened_body(body, kept))


def _loosened_body(body: Graph, kept: int) -> Graph:
    return replace(
        loosened(body),
        inputs=(*body.inputs[:kept], *(ValueInfo(info.name, None) for info in body.inputs[kept:])),
        outputs=tuple(ValueInfo(info.name, None) for info in body.outputs),
        types={},
    )


def rewired(draft: Draft, names: Mapping[str, str]) -> Draft:
    """Return the draft in which every reader of `old` reads `names[old]` instead, outputs included.

    Two outputs that become one are merged. Producers keep their names; `tidy` removes those without readers.
    """
    graph = draft.graph
    final = {old: _follow(old, names) for old in names}
    nodes = tuple(redirect(node, final) for node in graph.nodes)
    outputs = {final.get(info.name, info.name): info for info in graph.outputs}
    infos = tuple(replace(info, name=name) for name, info in outputs.items())
    return draft.with_graph(nodes=nodes, outputs=infos)


def _follow(name: str, names: Mapping[str, str]) -> str:
    seen = set()
    while name in names and name not in seen:
        seen.add(name)
        name = names[name]
    return name
