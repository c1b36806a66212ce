"""Output types of a single node, by onnx's inference."""

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import onnx
from onnx import defs

from miscompile.base.errors import ModelError
from miscompile.core.tensor import Tensor
from miscompile.graph.careful import must_survive
from miscompile.graph.model import Attribute, Node, TensorType, ValueType
from miscompile.graph.read import read_type
from miscompile.graph.wire import attribute_field, node_bytes, tensor_bytes, type_bytes

_LIKE_FIRST = frozenset({"GroupNormalization", "MeanVarianceNormalization"})
"""Operators whose result has the type of the first operand, but for which onnx's inference gives no shape."""


@cache
def _schema(op: str, opset: int, domain: str) -> Any:  # noqa: ANN401 - an extension type
    return defs.get_schema(op, opset, domain)


@cache
def _imports(opset: int) -> dict[str, int]:
    return {"": opset}


def infer(
    node: Node, types: Mapping[str, ValueType], opset: int, known: Mapping[str, Tensor] | None = None
) -> tuple[ValueType | None, ...]:
    """Return the types of `node`'s outputs, None where inference finds no type.

    `types` gives the inputs' types, `known` the inputs whose elements are known (shapes, axes). Raises ModelError
    when the node breaks its operator's rules.
    """
    given = {name: type_bytes(types[name]) for name in node.inputs if name}
    elements = {name: tensor_bytes(value) for name, value in (known or {}).items()}
    found = _outputs(node.op, node.domain, opset, node_bytes(node), given, elements)
    if node.op in _LIKE_FIRST and not node.domain:
        return (types[node.inputs[0]],)
    return tuple(_read(found[name]) if name in found else None for name in node.outputs)


def infer_call(
    op: str,
    opset: int,
    attributes: Mapping[str, Attribute],
    operands: Sequence[TensorType | None],
    outputs: int,
    known: Mapping[int, Tensor] | None = None,
    domain: str = "",
) -> tuple[ValueType | None, ...]:
    """Return the output types of a call that has no names yet; the keys of `known` are the positions of the
    operands.

    None among the operands is an omitted optional operand. There is no cache of calls, because they seldom repeat;
    their serialised fragments repeat, and those are cached. Raises ModelError.
    """
    parts = [_frame(op, domain, tuple([operand is not None for operand in operands]), outputs)]
    parts += [attribute_field(name, attribute) for name, attribute in attributes.items()]
    given = {str(place): type_bytes(operand) for place, operand in enumerate(operands) if operand is not None}
    elements = {str(place): tensor_bytes(value) for place, value in known.items()} if known else {}
    found = _outputs(op, domain, opset, b"".join(parts), given, elements)
    if op in _LIKE_FIRST and not domain:
        return (operands[0],)
    return tuple([_read(found[name]) if name in found else None for name in _results(outputs)])


def _outputs(
    op: str, domain: str, opset: int, node: bytes, types: dict[str, bytes], known: dict[str, bytes]
) -> dict[str, bytes]:
    """Return the serialised output types by name. Raises ModelError."""

    def call() -> dict[str, bytes]:
        infer_outputs = _schema(op, opset, domain)._infer_node_outputs
        return infer_outputs(node, types, known, {}, _imports(opset), 10)  # type: ignore[no-any-return]

    must_survive(call)
    try:
        return call()
    except (
        defs.SchemaError,
        onnx.shape_inference.InferenceError,
        onnx.checker.ValidationError,
        RuntimeError,
        ValueError,
    ) as error:
        raise ModelError(f"{op}: {str(error).strip().partition(chr(10))[0]}") from None


@cache
def _results(count: int) -> tuple[str, ...]:
    return tuple(f"y{place}" for place in range(count))


@lru_cache(1 << 12)
def _frame(op: str, domain: str, present: tuple[bool, ...], outputs: int) -> bytes:
    """Return a NodeProto without attributes whose inputs are named by their positions."""
    inputs = tuple(str(place) if there else "" for place, there in enumerate(present))
    return node_bytes(Node(op, inputs, _results(outputs), {}, domain))


@lru_cache(1 << 16)
def _read(data: bytes) -> ValueType | None:
    return read_type(onnx.TypeProto.FromString(data))
