"""Models and tensors as Python source that needs numpy and onnx alone."""

import keyword
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from miscompile.codegen.layout import Expression, Group, Keyed, array, assign, call
from miscompile.codegen.literals import array_code, bytes_code, literal, native, number_code, quoted
from miscompile.core.tensor import Tensor
from miscompile.graph.emit import emit, tensor_proto
from miscompile.graph.model import Attribute, Function, Graph, Model, Node, TensorType, ValueInfo

_RESERVED = frozenset({"op_type", "inputs", "outputs", "name", "doc_string", "domain", "overload"})


class _NotEncodable(Exception):  # noqa: N818 - control flow: the model is then written as bytes
    """The model holds something that has no short spelling."""


def onnx_name(dtype: str) -> str:
    """Return the name of `dtype` in onnx.TensorProto (`float32` is FLOAT)."""
    return {"float32": "FLOAT", "float64": "DOUBLE"}.get(dtype, dtype.upper())


def model_code(model: Model) -> str:
    """Return statements that define `model`, one line for each node where it fits.

    A model with something that has no short spelling (sparse constants, type attributes) comes as base64 bytes.
    Raises ModelError when the model cannot be emitted.
    """
    try:
        return _ModelWriter().model(model)
    except _NotEncodable as reason:
        return payload_code(emit(model), str(reason))


def payload_code(payload: bytes, reason: str) -> str:
    """Return the statement that defines `model` by its bytes, with the reason as a comment."""
    return f"# As bytes, because {reason}.\n" + assign("model", call("onnx.load_from_string", bytes_code(payload)))


def feeds_code(feeds: Sequence[Mapping[str, Tensor]]) -> str:
    """Return the statement that defines `feeds`, a list with one dict for each feed."""
    displays = [
        Group("{", tuple(Keyed(f"{quoted(name)}: ", array_code(value)) for name, value in feed.items()), "}")
        for feed in feeds
    ]
    return assign("feeds", array(displays, tall=True))


@dataclass(slots=True)
class _ModelWriter:
    """Writes models; `before` collects the definitions of bodies, which precede the main graph."""

    before: list[str] = field(default_factory=list)
    bodies: int = 0

    def model(self, model: Model) -> str:
        functions = [self.function(function) for function in model.functions]
        graph = self.graph(model.graph, "")
        arguments: list[Expression] = [
            "graph",
            Keyed("opset_imports=", self.opsets(model.opsets)),
            f"ir_version={model.ir_version}",
        ]
        lines = list(self.before)
        if functions:
            lines.append(assign("functions", array(functions, tall=True)))
            arguments.append("functions=functions")
        return "\n".join([*lines, graph, assign("model", call("helper.make_model", *arguments))])

    def graph(self, graph: Graph, prefix: str) -> str:
        """Statements that define `<prefix>graph`."""
        if graph.sparse_initializers:
            raise _NotEncodable("it has sparse constants")
        names = [f"{prefix}{part}" for part in ("nodes", "inputs", "outputs", "constants")]
        constants = [self.constant(name, value) for name, value in graph.initializers.items()]
        parts = [
            assign(names[0], array([self.node(node) for node in graph.nodes], tall=True)),
            assign(names[1], array([self.info(info) for info in graph.inputs], tall=len(graph.inputs) > 1)),
            assign(names[2], array([self.info(info) for info in graph.outputs], tall=len(graph.outputs) > 1)),
        ]
        if constants:
            parts.append(assign(names[3], array(constants, tall=True)))
        words = (names[0], quoted(graph.name or "g"), *names[1 : 4 if constants else 3])
        parts.append(assign(f"{prefix}graph", call("helper.make_graph", *words)))
        return "\n".join(parts)

    def node(self, node: Node) -> Expression:
        words: list[Expression] = [quoted(node.op), _names(node.inputs), _names(node.outputs)]
        for key, text in (("name", node.name), ("domain", node.domain), ("overload", node.overload)):
            if text:
                words.append(f"{key}={quoted(text)}")
        for name, attribute in node.attributes.items():
            if name in _RESERVED or not name.isidentifier() or keyword.iskeyword(name):
                raise _NotEncodable(f"an attribute is called {name!r}")
            words.append(Keyed(f"{name}=", self.attribute(attribute)))
        return call("helper.make_node", *words)

    def attribute(self, attribute: Attribute) -> Expression:
        kind, value = attribute.kind, attribute.value
        if kind == "tensor":
            return self.constant("", value)
        if kind == "graph":
            self.bodies += 1
            prefix = f"body{self.bodies}_"
            self.before.append(self.graph(value, prefix))
            return f"{prefix}graph"
        if kind == "float":
            return number_code(value, np.float32)
        if kind in ("int", "string"):
            return literal(value)
        if kind not in ("ints", "floats", "strings") or not value:
            raise _NotEncodable(f"an attribute is of kind {kind}" + ("" if value else " and empty"))
        if kind == "floats":
            return array([number_code(item, np.float32) for item in value])
        return array([literal(item) for item in value])

    def constant(self, name: str, value: Tensor) -> Expression:
        label = [quoted(name)] if name else []
        if native(value.dtype):
            return call("numpy_helper.from_array", array_code(value), *label)
        raw = bytes_code(tensor_proto(value).raw_data)
        kind = f"TensorProto.{onnx_name(value.dtype)}"
        return call("helper.make_tensor", quoted(name), kind, literal(list(value.shape)), raw, "raw=True")

    def info(self, info: ValueInfo) -> Expression:
        if info.type is None:
            return f"onnx.ValueInfoProto(name={quoted(info.name)})"
        if not isinstance(info.type, TensorType):
            raise _NotEncodable(f"{info.name} is no tensor")
        shape = info.type.shape
        sizes: Expression = "None"
        if shape is not None:
            sizes = array([literal(size) for size in shape])
        return call(
            "helper.make_tensor_value_info", quoted(info.name), f"TensorProto.{onnx_name(info.type.dtype)}", sizes
        )

    def function(self, function: Function) -> Expression:
        if function.defaults or function.overload:
            raise _NotEncodable("a function has attributes with defaults or an overload")
        return call(
            "helper.make_function",
            quoted(function.domain),
            quoted(function.name),
            _names(function.inputs),
            _names(function.outputs),
            array([self.node(node) for node in function.nodes], tall=True),
            self.opsets(function.opsets),
            _names(function.attributes),
        )

    def opsets(self, opsets: Mapping[str, int]) -> Expression:
        return array([f"helper.make_opsetid({quoted(name)}, {version})" for name, version in opsets.items()])


def _names(names: Sequence[str]) -> Expression:
    return array([quoted(name) for name in names])
