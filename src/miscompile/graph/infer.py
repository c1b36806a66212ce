"""Output types of a single node, by onnx's own inference."""

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

import onnx
from onnx import defs

from miscompile.base.errors import ModelError
from miscompile.core.tensor import Tensor
from miscompile.graph.emit import node_proto, tensor_proto, type_proto
from miscompile.graph.model import Node, ValueType
from miscompile.graph.read import read_type
from miscompile.graph.wire import node_bytes, tensor_bytes, type_bytes

_LIKE_FIRST = frozenset({"GroupNormalization", "MeanVarianceNormalization"})
"""Operators whose result has the type of the first operand, but for which onnx's inference gives no shape."""


@cache
def _schema(op: str, opset: int, domain: str) -> Any:  # noqa: ANN401 - an extension type
    return defs.get_schema(op, opset, domain)


@cache
def _imports(opset: int) -> dict[str, int]:
    return {"": opset}


def _node(node: Node) -> bytes:
    return node_bytes(node) or node_proto(node).SerializeToString()  # type: ignore[no-any-return]


def _type(value_type: ValueType) -> bytes:
    return type_bytes(value_type) or type_proto(value_type).SerializeToString()  # type: ignore[no-any-return]


def _tensor(value: Tensor) -> bytes:
    return tensor_bytes(value) or tensor_proto(value).SerializeToString()  # type: ignore[no-any-return]


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
            _node(node),
            {name: _type(types[name]) for name in node.inputs if name},
            {name: _tensor(value) for name, value in (known or {}).items()},
            {},
            _imports(opset),
            10,
        )
    except (
        defs.SchemaError,
        onnx.shape_inference.InferenceError,
        onnx.checker.ValidationError,
        RuntimeError,
        ValueError,
    ) as error:
        raise ModelError(f"{node.op}: {str(error).strip().partition(chr(10))[0]}") from None
    if node.op in _LIKE_FIRST and not node.domain:
        return (types[node.inputs[0]],)
    return tuple(_read(found[name]) if name in found else None for name in node.outputs)


@lru_cache(1 << 16)
def _read(data: bytes) -> ValueType | None:
    return read_type(onnx.TypeProto.FromString(data))
