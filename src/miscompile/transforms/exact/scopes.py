"""Scopes: the main graph, the bodies in it, and the functions, each with a path that changes elsewhere do not affect.

The place of a node is the path of its scope and the name of its first output, so that it keeps its name when nodes
elsewhere are added or removed. Names are percent-encoded, so that a spec can hold a place with any characters.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import quote

from miscompile.base.errors import ModelError
from miscompile.core.tensor import Tensor
from miscompile.graph.bodies import Typing, typing_of
from miscompile.graph.model import (
    Attribute,
    Function,
    Graph,
    Model,
    Node,
    SparseTensor,
    TensorType,
    ValueInfo,
    ValueType,
)
from miscompile.graph.typing import value_types

ScopeKind = Literal["main", "body", "function"]


@dataclass(frozen=True, slots=True)
class NodeScope:
    """The nodes of one scope with their context; `depth` counts the enclosing bodies.

    Functions have neither initialisers nor types of their inputs and outputs. `opsets` maps domains to versions.
    """

    path: str
    kind: ScopeKind
    depth: int
    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]
    nodes: tuple[Node, ...]
    initializers: Mapping[str, Tensor]
    sparse: Mapping[str, SparseTensor]
    types: Mapping[str, ValueType]
    opsets: Mapping[str, int]

    def place(self, name: str) -> str:
        """Return the place of value `name`, which this scope defines."""
        written = quote(name, safe="")
        return f"{self.path}/{written}" if self.path else written

    def place_of(self, node: Node) -> str:
        """Return the place of `node`, a node of this scope."""
        return self.place(next(filter(None, node.outputs), ""))

    @property
    def in_function(self) -> bool:
        """Whether this is a function, or a body inside of one."""
        return self.path.startswith("fn:")

    @property
    def opset(self) -> int:
        """Version of the standard operator set; 0 where none is imported."""
        return self.opsets.get("", self.opsets.get("ai.onnx", 0))

    @property
    def given(self) -> frozenset[str]:
        """Names of the inputs."""
        return frozenset(info.name for info in self.inputs)

    @property
    def output_names(self) -> frozenset[str]:
        """Names of the outputs."""
        return frozenset(info.name for info in self.outputs)

    def with_nodes(self, nodes: tuple[Node, ...]) -> "NodeScope":
        """Return this scope with other nodes, and without the types of removed values."""
        kept = {*self.initializers, *self.sparse, *self.given, *(name for node in nodes for name in node.outputs)}
        types = {name: known for name, known in self.types.items() if name in kept}
        return replace(self, nodes=nodes, types=types)


ScopeChange = Callable[[NodeScope], NodeScope]
"""Returns the replacement of a scope. Bodies are replaced before the scope of their node."""


def rewrite(model: Model, change: ScopeChange) -> Model:
    """Return `model` with `change` applied to every scope; `model` itself where nothing changes.

    Paths are those of the original: the first outputs of nodes with bodies must stay until their scope is replaced.
    """
    graph = _graph(model.graph, "", "main", 0, model.opsets, change)
    functions = tuple(_function(function, change) for function in model.functions)
    same = graph is model.graph and all(new is old for new, old in zip(functions, model.functions, strict=True))
    return model if same else replace(model, graph=graph, functions=functions)


def scopes(model: Model) -> list[NodeScope]:
    """Return every scope of `model`, bodies before the enclosing scope."""
    found: list[NodeScope] = []

    def note(scope: NodeScope) -> NodeScope:
        found.append(scope)
        return scope

    rewrite(model, note)
    return found


def types_by_scope(model: Model) -> dict[str, Mapping[str, ValueType]]:
    """Return the types of all visible values in the main graph and in each body, by the path of the scope.

    Functions, which are untyped, and values whose types inference does not find are left out. Symbolic sizes are those
    that the model declares.
    """
    try:
        known = typing_of(model)
    except ModelError:  # inference refuses some valid models: it expands MeanVarianceNormalization without its defaults
        known = Typing(value_types(model, strict=False), {}, model.opset).within(model.graph, {})
    symbols = declared_symbols(model.graph)
    return {
        path: {name: without_invented(kind, symbols) for name, kind in types.items()}
        for path, types in _typed(model.graph, "", known)
    }


def declared_symbols(graph: Graph) -> frozenset[str]:
    """Return the names of the symbolic sizes in a main graph's declarations."""
    kinds = [*(info.type for info in (*graph.inputs, *graph.outputs)), *graph.types.values()]
    shapes = [kind.shape for kind in kinds if isinstance(kind, TensorType) and kind.shape is not None]
    return frozenset(size for shape in shapes for size in shape if isinstance(size, str))


def without_invented(kind: ValueType, symbols: frozenset[str]) -> ValueType:
    """Return `kind` with sizes unknown that are neither numbers nor among `symbols`.

    Inference invents symbols for unknown sizes and reuses their names in the next graph. Two such symbols in one model
    would declare unequal sizes as equal.
    """
    if not isinstance(kind, TensorType) or kind.shape is None:
        return kind
    return TensorType(
        kind.dtype, tuple(None if isinstance(size, str) and size not in symbols else size for size in kind.shape)
    )


def _typed(graph: Graph, path: str, place: Typing) -> Iterator[tuple[str, Mapping[str, ValueType]]]:
    yield path, place.types
    for node in graph.nodes:
        bodies = list(_bodies(node, path))
        for (inner, body), known in zip(bodies, place.bodies(node) if bodies else (), strict=True):
            yield from _typed(body, inner, known)


def _bodies(node: Node, path: str) -> Iterator[tuple[str, Graph]]:
    """Yield the bodies of `node`, a node of the scope at `path`, with their paths."""
    name = quote(next(filter(None, node.outputs), ""), safe="")
    owner = f"{path}/{name}" if path else name
    for key, attribute in node.attributes.items():
        if attribute.kind == "graph":
            yield f"{owner}/{key}", attribute.value
        elif attribute.kind == "graphs":
            yield from ((f"{owner}/{key}.{place}", body) for place, body in enumerate(attribute.value))


def _graph(
    graph: Graph, path: str, kind: ScopeKind, depth: int, opsets: Mapping[str, int], change: ScopeChange
) -> Graph:
    nodes = _nodes(graph.nodes, path, depth, opsets, change)
    old = NodeScope(
        path, kind, depth, graph.inputs, graph.outputs, nodes,
        graph.initializers, graph.sparse_initializers, graph.types, opsets,
    )  # fmt: skip
    new = change(old)
    if new is old and nodes is graph.nodes:
        return graph
    return Graph(graph.name, new.inputs, new.outputs, new.nodes, new.initializers, new.sparse, new.types)


def _function(function: Function, change: ScopeChange) -> Function:
    path = ":".join(("fn", *(quote(part, safe="") for part in (function.domain, function.name, function.overload))))
    nodes = _nodes(function.nodes, path, 0, function.opsets, change)
    inputs, outputs = (tuple(ValueInfo(name, None) for name in names) for names in (function.inputs, function.outputs))
    old = NodeScope(path, "function", 0, inputs, outputs, nodes, {}, {}, function.types, function.opsets)
    new = change(old)
    if new is old and nodes is function.nodes:
        return function
    return replace(
        function,
        inputs=tuple(info.name for info in new.inputs),
        outputs=tuple(info.name for info in new.outputs),
        nodes=new.nodes,
        types=new.types,
    )


def _nodes(
    nodes: tuple[Node, ...], path: str, depth: int, opsets: Mapping[str, int], change: ScopeChange
) -> tuple[Node, ...]:
    found = tuple(_node(node, path, depth, opsets, change) for node in nodes)
    return nodes if all(new is old for new, old in zip(found, nodes, strict=True)) else found


def _node(node: Node, path: str, depth: int, opsets: Mapping[str, int], change: ScopeChange) -> Node:
    if not any(attribute.kind in ("graph", "graphs") for attribute in node.attributes.values()):
        return node
    found = iter([_graph(body, inner, "body", depth + 1, opsets, change) for inner, body in _bodies(node, path)])
    attributes = dict(node.attributes)
    same = True
    for key, attribute in node.attributes.items():
        if attribute.kind == "graph":
            attributes[key] = Attribute("graph", next(found))
            same = same and attributes[key].value is attribute.value
        elif attribute.kind == "graphs":
            attributes[key] = Attribute("graphs", tuple(next(found) for _ in attribute.value))
            same = same and all(a is b for a, b in zip(attributes[key].value, attribute.value, strict=True))
    return node if same else replace(node, attributes=attributes)
