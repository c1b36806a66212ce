"""Conversion of a graph to a program: bytes with described inputs and outputs, which targets build."""

from collections.abc import Collection

from miscompile.base.errors import ModelError
from miscompile.core.case import Port, Program
from miscompile.graph.emit import emit
from miscompile.graph.model import Model, TensorType, ValueInfo


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
