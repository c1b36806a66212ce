"""Constant nodes: the tensor that one makes, and the nodes that make a tensor.

https://onnx.ai/onnx/operators/onnx__Constant.html
"""

from collections.abc import Mapping

import numpy as np

from miscompile.core.tensor import Tensor
from miscompile.graph.model import Attribute, AttributeKind, Node

NUMBERS = 12
"""The opset since which a Constant node may have numbers in place of a tensor."""

_MOST = 64
"""The most numbers of a constant that becomes a node of numbers."""

_DTYPES = {"value_int": "int64", "value_ints": "int64", "value_float": "float32", "value_floats": "float32"}
_WORDS = ("value_string", "value_strings")
_KINDS: Mapping[str, tuple[AttributeKind, AttributeKind]] = {"int64": ("int", "ints"), "float32": ("float", "floats")}
"""Element type -> the kinds of attributes that hold one number, and a list."""


def constant_of(node: Node) -> Tensor | None:
    """Return the tensor of a Constant node; None for other nodes, sparse values and references to attributes."""
    if node.op != "Constant" or node.domain not in ("", "ai.onnx") or len(node.attributes) != 1:
        return None
    ((name, attribute),) = node.attributes.items()
    if attribute.kind == "ref":
        return None
    if name == "value":
        return attribute.value if isinstance(attribute.value, Tensor) else None
    if name in _WORDS:
        return Tensor("string", np.array(attribute.value, object))
    dtype = _DTYPES.get(name)
    return None if dtype is None else Tensor(dtype, np.array(attribute.value, dtype))


def constant(name: str, value: Tensor) -> Node:
    """Return the Constant node that makes `value` under `name`."""
    return Node("Constant", (), (name,), {"value": Attribute("tensor", value)})


def constant_of_numbers(name: str, value: Tensor) -> Node | None:
    """Return the Constant node that makes `value` of a number or a list of numbers; None where there is none.

    Only int64 and float32 have such nodes, of up to one axis. Finite numbers, and lists of one to 64, get one here.
    """
    kinds, array = _KINDS.get(value.dtype), value.array
    if kinds is None or array.ndim > 1 or not 0 < array.size <= _MOST or not np.isfinite(array).all():
        return None
    kind, given = kinds[array.ndim], array.tolist()
    return Node("Constant", (), (name,), {f"value_{kind}": Attribute(kind, tuple(given) if array.ndim else given)})
