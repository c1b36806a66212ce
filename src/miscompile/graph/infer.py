"""Output types of a single node, by onnx's own inference."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import onnx
from onnx import defs

from miscompile.base.dtypes import BY_CODE
from miscompile.base.errors import ModelError
from miscompile.core.case import Dim
from miscompile.core.tensor import Tensor
from miscompile.graph.emit import node_proto, tensor_proto, type_proto
from miscompile.graph.model import (
    MapType,
    Node,
    OptionalType,
    SequenceType,
    SparseTensorType,
    TensorType,
    ValueType,
)


@cache
def _schema(op: str, opset: int, domain: str) -> Any:  # noqa: ANN401 - an extension type
    return defs.get_schema(op, opset, domain)


@cache
def _imports(opset: int) -> dict[str, int]:
    return {"": opset}


@cache
def _type_bytes(value_type: ValueType) -> bytes:
    return type_proto(value_type).SerializeToString()  # type: ignore[no-any-return]


def infer(
    node: Node, types: Mapping[str, ValueType], opset: int, known: Mapping[str, Tensor] | None = None
) -> tuple[ValueType | None, ...]:
    """Return the types of `node`'s outputs, None where inference says nothing.

    `types` gives the inputs' types, `known` the inputs whose elements are known (shapes, axes). Raises ModelError
    when the node breaks its operator's rules.
    """
    try:
        schema = _schema(node.op, opset, node.domain)
        found = schema._infer_node_outputs(
            node_proto(node).SerializeToString(),
            {name: _type_bytes(types[name]) for name in node.inputs if name},
            {name: tensor_proto(value).SerializeToString() for name, value in (known or {}).items()},
            {},
            _imports(opset),
            10,
        )
    except (defs.SchemaError, onnx.shape_inference.InferenceError, RuntimeError) as error:
        raise ModelError(f"{node.op}: {str(error).strip().splitlines()[0]}") from None
    return tuple(_read(found[name]) if name in found else None for name in node.outputs)


@cache
def _read(data: bytes) -> ValueType | None:
    return read_type(onnx.TypeProto.FromString(data))


def read_type(proto: onnx.TypeProto) -> ValueType | None:
    """Return the value type that `proto` says, None when it says nothing. Raises ModelError for foreign kinds."""
    kind = proto.WhichOneof("value")
    if kind is None:
        return None
    body = getattr(proto, kind)
    if kind in ("tensor_type", "sparse_tensor_type"):
        if not body.elem_type:
            return None
        make = TensorType if kind == "tensor_type" else SparseTensorType
        return make(BY_CODE[body.elem_type].name, _shape(body))
    if kind in ("sequence_type", "optional_type"):
        element = read_type(body.elem_type)
        wrap = SequenceType if kind == "sequence_type" else OptionalType
        return None if element is None else wrap(element)
    if kind == "map_type":
        value = read_type(body.value_type)
        return None if value is None else MapType(BY_CODE[body.key_type].name, value)
    raise ModelError(f"values of kind {kind} are not part of ONNX")


def _shape(body: Any) -> tuple[Dim, ...] | None:  # noqa: ANN401 - a protobuf message
    if not body.HasField("shape"):
        return None
    return tuple(dim.dim_value if dim.HasField("dim_value") else (dim.dim_param or None) for dim in body.shape.dim)
