"""The graph value: plain, slotted, immutable. Edges are value names, as in ONNX; `""` is an omitted optional value.

It represents every part of a ModelProto that changes the model's meaning. Documentation strings and metadata are
dropped on reading. This module does not use protobuf: only `emit` and `read` convert.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from miscompile.core.case import Dim
from miscompile.core.tensor import Tensor


@dataclass(frozen=True, slots=True)
class TensorType:
    """A dense tensor; `shape` is None when not even the rank is known."""

    dtype: str
    shape: tuple[Dim, ...] | None

    @property
    def static(self) -> bool:
        """Whether all sizes are numbers."""
        return self.shape is not None and all(isinstance(size, int) for size in self.shape)


@dataclass(frozen=True, slots=True)
class SparseTensorType:
    """A sparse tensor."""

    dtype: str
    shape: tuple[Dim, ...] | None


@dataclass(frozen=True, slots=True)
class SequenceType:
    """A sequence of values of one type."""

    element: "ValueType"


@dataclass(frozen=True, slots=True)
class OptionalType:
    """A value or nothing."""

    element: "ValueType"


@dataclass(frozen=True, slots=True)
class MapType:
    """A map from a key dtype to values."""

    key: str
    value: "ValueType"


ValueType: TypeAlias = TensorType | SparseTensorType | SequenceType | OptionalType | MapType


@dataclass(frozen=True, slots=True)
class SparseTensor:
    """A sparse constant: values, their int64 indices, and the dense shape."""

    values: Tensor
    indices: Tensor
    shape: tuple[int, ...]


AttributeKind = Literal[
    "int", "float", "string", "tensor", "graph", "type", "sparse",
    "ints", "floats", "strings", "tensors", "graphs", "types", "sparses", "ref",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute value with its ONNX kind.

    `value` is an int, float, str (undecodable bytes as surrogate escapes), Tensor, Graph, ValueType, SparseTensor,
    or a tuple of those for the plural kinds. Kind `ref` names an attribute of the enclosing function; `ref_kind`
    is then the kind that it stands for.
    """

    kind: AttributeKind
    value: Any
    ref_kind: AttributeKind | None = None


NO_ATTRIBUTES: Mapping[str, Attribute] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Node:
    """An operator call. `attributes` keeps its order."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=lambda: NO_ATTRIBUTES)
    domain: str = ""
    name: str = ""
    overload: str = ""

    def subgraphs(self) -> Iterator["Graph"]:
        """Yield the bodies in this node's attributes (If, Loop, Scan, SequenceMap)."""
        for attribute in self.attributes.values():
            if attribute.kind == "graph":
                yield attribute.value
            elif attribute.kind == "graphs":
                yield from attribute.value


@dataclass(frozen=True, slots=True)
class ValueInfo:
    """A named value with its type, or None where the model declares none (function bodies, some subgraphs)."""

    name: str
    type: ValueType | None


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph or subgraph. Nodes are in topological order.

    `types` contains the known types of inner values. An initialiser with the name of an input is that input's
    default.
    """

    name: str
    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]
    nodes: tuple[Node, ...]
    initializers: Mapping[str, Tensor] = field(default_factory=dict)
    sparse_initializers: Mapping[str, SparseTensor] = field(default_factory=dict)
    types: Mapping[str, ValueType] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Function:
    """A model-local function: untyped, called as an operator of `domain`.

    `attributes` are the names of required attributes, `defaults` those with a default value.
    """

    domain: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    opsets: Mapping[str, int]
    attributes: tuple[str, ...] = ()
    defaults: Mapping[str, Attribute] = field(default_factory=dict)
    overload: str = ""
    types: Mapping[str, ValueType] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Model:
    """A graph with its functions, opset imports (`""` is the standard domain) and IR version."""

    graph: Graph
    opsets: Mapping[str, int]
    functions: tuple[Function, ...] = ()
    ir_version: int = 10

    @property
    def opset(self) -> int:
        """Version of the standard operator set."""
        return self.opsets.get("", self.opsets.get("ai.onnx", 1))
