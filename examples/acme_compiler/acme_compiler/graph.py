"""The compiler's own graph, and how it is read from ONNX."""

from dataclasses import dataclass, field
from typing import Any

import onnx
from onnx import TensorProto, helper, numpy_helper

from acme_compiler.kernels import KERNELS

DTYPES = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64)


class UnsupportedError(Exception):
    """The compiler lacks an operator, an attribute or an element type."""


class InvalidModelError(Exception):
    """The model is broken."""


@dataclass(slots=True)
class Node:
    """A call of an operator with one output."""

    op: str
    inputs: tuple[str, ...]
    output: str
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Graph:
    """Nodes in the order in which they run; constants are numpy arrays by name."""

    nodes: list[Node]
    constants: dict[str, Any]
    outputs: list[str]

    def maker(self, name: str) -> Node | None:
        """Return the node that makes the value `name`; None for an input or a constant."""
        return next((node for node in self.nodes if node.output == name), None)

    def replace(self, old: str, new: str) -> None:
        """Let every node, and the outputs, read the value `new` in place of `old`."""
        for node in self.nodes:
            node.inputs = tuple(new if name == old else name for name in node.inputs)
        self.outputs = [new if name == old else name for name in self.outputs]


def read(data: bytes) -> Graph:
    """Return the graph of a serialised model. Raises UnsupportedError or InvalidModelError."""
    try:
        model = onnx.load_model_from_string(data)
        onnx.checker.check_model(model)
    except Exception as error:  # noqa: BLE001 - protobuf and onnx each have errors of their own
        if "No Op registered" in str(error):
            raise UnsupportedError(str(error)) from None
        raise InvalidModelError(str(error)) from None
    for value in (*model.graph.input, *model.graph.output):
        _check_dtype(value.type.tensor_type.elem_type)
    constants = {item.name: _constant(item) for item in model.graph.initializer}
    nodes = []
    for node in model.graph.node:
        attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
        if node.op_type == "Constant" and set(attributes) == {"value"}:
            constants[node.output[0]] = _constant(attributes["value"])
        elif node.op_type in KERNELS and not node.domain:
            nodes.append(Node(node.op_type, tuple(node.input), node.output[0], attributes))
        else:
            raise UnsupportedError(f"operator {node.op_type}")
    return Graph(nodes, constants, [value.name for value in model.graph.output])


def _constant(proto: TensorProto) -> Any:  # noqa: ANN401 - a numpy array
    _check_dtype(proto.data_type)
    return numpy_helper.to_array(proto)


def _check_dtype(code: int) -> None:
    if code not in DTYPES:
        raise UnsupportedError(f"element type {code}")
