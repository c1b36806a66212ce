"""A digest of a model's computation that does not depend on the names of values and nodes or on the order of nodes.

Every value gets a colour, a digest of its origin. The colours then propagate back from the uses, so that one shared
node differs from two equal nodes. A second round combines both directions (Weisfeiler-Leman refinement on an acyclic
graph). The digest of the model is the digest of all colours.
"""

import hashlib
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass

from miscompile.base.digest import digest_bytes
from miscompile.base.dtypes import DTYPES
from miscompile.core.case import Dim
from miscompile.core.small import is_packed, pack
from miscompile.core.tensor import Tensor
from miscompile.graph.edges import captured, reads, toposort
from miscompile.graph.equality import float_bits
from miscompile.graph.model import (
    Attribute,
    Function,
    Graph,
    MapType,
    Model,
    Node,
    OptionalType,
    SequenceType,
    SparseTensor,
    SparseTensorType,
    TensorType,
    ValueInfo,
    ValueType,
)

_ROUNDS = 2


def fingerprint(model: Model, *, values: bool = True, shapes: bool = True) -> str:
    """Return 16 hexadecimal digits that equal models share.

    The digits do not depend on the names of values, nodes, graphs and symbolic sizes, on the order of initialisers,
    attributes and independent nodes, on declared types of inner values, or on the IR version. They depend on
    operators, attributes, edges, sharing, dead nodes, dtypes, sizes, contents of tensors, functions and opset imports.
    `values=False` ignores the contents of tensors (initialisers and attributes), `shapes=False` ignores all sizes
    but not ranks. Raises ModelError when nodes form a cycle.
    """
    painter = _Painter(values, shapes, _symbols(model.graph))
    imports = sorted((_domain(domain), str(version)) for domain, version in model.opsets.items())
    functions = sorted(painter.function(function) for function in model.functions)
    return digest_bytes(_digest("model", imports, functions, painter.graph(model.graph, {})).encode())


def _symbols(graph: Graph) -> dict[str, int]:
    found: dict[str, int] = {}
    for info in (*graph.inputs, *graph.outputs):
        if isinstance(info.type, TensorType | SparseTensorType):
            for size in info.type.shape or ():
                if isinstance(size, str):
                    found.setdefault(size, len(found))
    return found


def _digest(*parts: object) -> str:
    """Digest nested lists and tuples of strings and integers; their structure counts."""
    return hashlib.blake2b(repr(parts).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


@dataclass(frozen=True, slots=True)
class _Painter:
    """Computes colours; `symbols` numbers the symbolic sizes in the types of the model's inputs and outputs."""

    values: bool
    shapes: bool
    symbols: Mapping[str, int]

    def graph(self, graph: Graph, outer: Mapping[str, str]) -> str:
        """Return the colour of a graph whose captured values have the colours `outer`."""
        graph = toposort(graph)
        colours = self._sources(graph)
        sources = tuple(colours)
        marks = [""] * len(graph.nodes)
        for _ in range(_ROUNDS):
            marks = self._forward(graph, colours, outer, marks)
            marks, uses = self._backward(graph, colours, outer, marks)
            colours.update((name, _digest(colours[name], sorted(uses.get(name, ())))) for name in sources)
        inputs = [colours[info.name] for info in graph.inputs]
        constants = sorted(colours[name] for name in (*graph.initializers, *graph.sparse_initializers))
        ends = [colours.get(info.name) or outer.get(info.name, "?") for info in graph.outputs]
        types = [self.type(info.type) for info in graph.outputs]
        return _digest("graph", inputs, constants, sorted(marks), ends, types)

    def function(self, function: Function) -> str:
        """Return the colour of a function: its key, parameters and body."""
        opsets = sorted((_domain(domain), str(version)) for domain, version in function.opsets.items())
        defaults = sorted((name, self.attribute(value, {})) for name, value in function.defaults.items())
        inputs = {name: _digest("parameter", place) for place, name in enumerate(function.inputs)}
        outputs = tuple(ValueInfo(name, None) for name in function.outputs)
        body = self.graph(Graph("", (), outputs, function.nodes), inputs)
        key = (_domain(function.domain), function.name, function.overload)
        return _digest("function", key, opsets, sorted(function.attributes), defaults, len(inputs), body)

    def _sources(self, graph: Graph) -> dict[str, str]:
        colours = {name: _digest("constant", self.tensor(value)) for name, value in graph.initializers.items()}
        for name, value in graph.sparse_initializers.items():
            colours[name] = _digest("constant", self.sparse(value))
        for place, info in enumerate(graph.inputs):
            colours[info.name] = _digest("input", place, self.type(info.type), colours.get(info.name, ""))
        return colours

    def _forward(self, graph: Graph, colours: dict[str, str], outer: Mapping[str, str], marks: list[str]) -> list[str]:
        """Colour node outputs in topological order; return the colours of the nodes."""
        known = ChainMap(colours, dict(outer))
        found: list[str] = []
        for node, mark in zip(graph.nodes, marks, strict=True):
            colour = _digest(self.node(node, known), mark)
            found.append(colour)
            colours.update((name, _digest(colour, place)) for place, name in enumerate(node.outputs) if name)
        return found

    def _backward(
        self, graph: Graph, colours: dict[str, str], outer: Mapping[str, str], marks: list[str]
    ) -> tuple[list[str], dict[str, list[str]]]:
        """Combine the colour of every node output with the colours of its uses, in reverse topological order.

        Returns the new colours of the nodes, and the colours of the uses of every value.
        """
        uses: dict[str, list[str]] = {}
        for place, info in enumerate(graph.outputs):
            uses.setdefault(info.name, []).append(_digest("output", place))
        before = {**outer, **colours}
        found = list(marks)
        for place in range(len(graph.nodes) - 1, -1, -1):
            node = graph.nodes[place]
            for name in node.outputs:
                if name:
                    colours[name] = _digest(colours[name], sorted(uses.get(name, ())))
            found[place] = _digest(marks[place], [colours[name] if name else "" for name in node.outputs])
            for name in dict.fromkeys(reads(node)):
                uses.setdefault(name, []).append(self._use(node, name, found[place], before))
        return found, uses

    def _use(self, node: Node, name: str, colour: str, before: Mapping[str, str]) -> str:
        """Return how `node` uses `name`: in which inputs, and where in its bodies."""
        slots = [place for place, given in enumerate(node.inputs) if given == name]
        bodies = [body for body in node.subgraphs() if name in captured(body)]
        return _digest(colour, slots, [self.graph(body, {**before, name: "this"}) for body in bodies])

    def node(self, node: Node, known: Mapping[str, str]) -> str:
        """Return the colour of a call whose operands have the colours `known`."""
        inputs = list(node.inputs)
        while inputs and not inputs[-1]:
            inputs.pop()
        operands = [known.get(name, "?") if name else "" for name in inputs]
        attributes = sorted((name, self.attribute(value, known)) for name, value in node.attributes.items())
        given = [bool(name) for name in node.outputs]
        return _digest(_domain(node.domain), node.op, node.overload, operands, attributes, given)

    def attribute(self, attribute: Attribute, known: Mapping[str, str]) -> str:
        """Return the colour of an attribute; bodies see the colours `known`."""
        kind, value = attribute.kind, attribute.value
        if kind == "ref":
            return _digest(kind, attribute.ref_kind or "", value)
        if kind in ("int", "float", "string", "tensor", "graph", "type", "sparse"):
            return _digest(kind, self._value(value, known))
        return _digest(kind, [self._value(item, known) for item in value])

    def _value(self, value: object, known: Mapping[str, str]) -> str:
        match value:
            case Tensor():
                return self.tensor(value)
            case SparseTensor():
                return self.sparse(value)
            case Graph():
                return self.graph(value, known)
            case float():
                return str(float_bits(value))
            case int() | str():
                return str(value)
            case TensorType() | SparseTensorType() | SequenceType() | OptionalType() | MapType():
                return self.type(value)
            case _:
                raise TypeError(f"{value!r} is no value of an attribute")

    def tensor(self, value: Tensor) -> str:
        """Return the colour of a constant tensor."""
        shape = value.shape if self.shapes else len(value.shape)
        return _digest("tensor", value.dtype, shape, _contents(value) if self.values else "")

    def sparse(self, value: SparseTensor) -> str:
        """Return the colour of a constant sparse tensor."""
        shape = value.shape if self.shapes else len(value.shape)
        return _digest("sparse", shape, self.tensor(value.values), self.tensor(value.indices))

    def type(self, value_type: ValueType | None) -> str:
        """Return the colour of a type."""
        match value_type:
            case None:
                return "?"
            case TensorType(dtype, shape):
                return _digest("dense", dtype, self._shape(shape))
            case SparseTensorType(dtype, shape):
                return _digest("sparse", dtype, self._shape(shape))
            case SequenceType(element):
                return _digest("sequence", self.type(element))
            case OptionalType(element):
                return _digest("optional", self.type(element))
            case MapType(key, element):
                return _digest("map", key, self.type(element))

    def _shape(self, shape: tuple[Dim, ...] | None) -> object:
        if shape is None:
            return "*"
        if not self.shapes:
            return len(shape)
        return [f"symbol {self.symbols.get(size, '?')}" if isinstance(size, str) else str(size) for size in shape]


def _contents(value: Tensor) -> str:
    if value.dtype == "string":
        return _digest([str(item) for item in value.array.reshape(-1)])
    data = pack(value.array, DTYPES[value.dtype].bits) if is_packed(value.dtype) else value.array.tobytes()
    return digest_bytes(data)
