"""Queries on onnx's schemas about operand and result types, which the relations make before they add a node."""

from miscompile.graph.model import MapType, OptionalType, SequenceType, TensorType, ValueType
from miscompile.ops.registry import schema

_ALIASES = {"float32": "float", "float64": "double"}


def written(kind: ValueType) -> str:
    """Return a value type in schema notation: `tensor(float)`, `seq(tensor(int64))`; an empty text for sparse ones."""
    match kind:
        case TensorType(dtype, _):
            return f"tensor({_ALIASES.get(dtype, dtype)})"
        case SequenceType(element):
            return f"seq({written(element)})"
        case OptionalType(element):
            return f"optional({written(element)})"
        case MapType(key, value):
            return f"map({_ALIASES.get(key, key)},{written(value)})"
    return ""


def gives(op: str, opset: int, kind: ValueType | None) -> bool:
    """Tell whether the last kind of result of the standard operator `op` may have type `kind`."""
    known = schema(op, opset)
    return known is not None and kind is not None and written(kind) in known.outputs[-1].types


def takes(op: str, opset: int, kind: ValueType | None) -> bool:
    """Tell whether the first operand of the standard operator `op` may have type `kind`."""
    known = schema(op, opset)
    return known is not None and kind is not None and written(kind) in known.inputs[0].types
