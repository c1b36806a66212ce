"""Emission of models: as bytes, as programs that targets build, and as messages of onnx for its own tools."""

from collections.abc import Collection

import onnx

from miscompile.base.errors import ModelError
from miscompile.core.case import Port, Program
from miscompile.core.tensor import Tensor
from miscompile.graph.model import Model, Node, TensorType, ValueInfo, ValueType
from miscompile.graph.wire import model_bytes, node_bytes, tensor_bytes, type_bytes


def emit(model: Model) -> bytes:
    """Return the serialised ModelProto of `model`. Raises ValueError for an integer of more than 64 bits."""
    return model_bytes(model)


def to_program(model: Model, exact: Collection[str] = ()) -> Program:
    """Emit `model` and describe its ports; `exact` names the outputs whose bits every compiler must agree on.

    Inputs with a default (an initialiser of the same name) are not ports. Raises ModelError when an input or
    output is not a tensor.
    """
    graph = model.graph
    return Program(
        "onnx",
        emit(model),
        tuple(_port(info, exact) for info in graph.inputs if info.name not in graph.initializers),
        tuple(_port(info, exact) for info in graph.outputs),
    )


def _port(info: ValueInfo, exact: Collection[str]) -> Port:
    if not isinstance(info.type, TensorType):
        raise ModelError(f"'{info.name}' is no tensor ({info.type}); only tensors can be inputs and outputs of a case")
    return Port(info.name, info.type.dtype, info.type.shape, info.name in exact)


def model_proto(model: Model) -> onnx.ModelProto:
    """Return `model` as a ModelProto."""
    return onnx.ModelProto.FromString(model_bytes(model))


def node_proto(node: Node) -> onnx.NodeProto:
    """Return `node` as a NodeProto."""
    return onnx.NodeProto.FromString(node_bytes(node))


def type_proto(value_type: ValueType) -> onnx.TypeProto:
    """Return `value_type` as a TypeProto."""
    return onnx.TypeProto.FromString(type_bytes(value_type))


def tensor_proto(value: Tensor, name: str = "") -> onnx.TensorProto:
    """Return `value` as a TensorProto named `name`."""
    return onnx.TensorProto.FromString(tensor_bytes(value, name))
