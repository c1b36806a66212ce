"""Conversion of a ModelProto to the graph value. Documentation, metadata and training information are dropped."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from miscompile.base.errors import ModelError
from miscompile.core.case import Dim
from miscompile.core.tensor import Tensor
from miscompile.graph.decode import decode_tensor, dtype_name
from miscompile.graph.model import (
    NO_ATTRIBUTES,
    Attribute,
    AttributeKind,
    Function,
    Graph,
    MapType,
    Model,
    Node,
    OptionalType,
    SequenceType,
    SparseTensor,
    SparseTensorType,
    TensorType,
    ValueInfo,
    ValueType,
)

_KINDS: dict[int, AttributeKind] = {
    1: "float", 2: "int", 3: "string", 4: "tensor", 5: "graph", 6: "floats", 7: "ints", 8: "strings", 9: "tensors",
    10: "graphs", 11: "sparse", 12: "sparses", 13: "type", 14: "types",
}  # fmt: skip
_FIELDS: dict[AttributeKind, str] = {
    "float": "f", "int": "i", "string": "s", "tensor": "t", "graph": "g", "floats": "floats", "ints": "ints",
    "strings": "strings", "tensors": "tensors", "graphs": "graphs", "sparse": "sparse_tensor",
    "sparses": "sparse_tensors", "type": "tp", "types": "type_protos",
}  # fmt: skip


def read(data: bytes | onnx.ModelProto) -> Model:
    """Return the model that `data`, a ModelProto or its bytes, holds.

    Raises ModelError when the bytes are not an ONNX model, when tensor data are in other files (use `load`), and
    when names that must be unique are not. `check` validates the other rules of ONNX.
    """
    return _Reader(None).model(_parse(data) if isinstance(data, bytes) else data)


def load(path: str | Path) -> Model:
    """Return the model in the file at `path`, with external data from files in the same folder.

    Faults that all compilers bear are removed, see `mended`. Raises ModelError when a file cannot be read or is broken.
    """
    place = Path(path)
    try:
        data = place.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read model '{place}': {error.strerror or error}") from None
    try:
        return _Reader(place.parent).model(_parse(mended(data)))
    except ModelError as error:
        raise ModelError(f"model '{place}': {error}") from None


def mended(data: bytes) -> bytes:
    """Return a serialised model without two faults of exporters that all compilers bear.

    Negative sizes become unknown, and a node whose name an earlier one in its graph has becomes one without a name,
    because names of nodes mean nothing. A model without these faults comes back as it is. Raises ModelError when `data`
    is no ModelProto.
    """
    proto = _parse(data)
    values = (*proto.graph.input, *proto.graph.output, *proto.graph.value_info)
    sizes = [dim for value in values for dim in value.type.tensor_type.shape.dim]  # empty for values of other types
    negative = [dim for dim in sizes if dim.dim_value < 0]
    for dim in negative:
        dim.Clear()
    repeated = _forget_repeated_names(proto.graph)
    return bytes(proto.SerializeToString()) if negative or repeated else data


def _forget_repeated_names(graph: onnx.GraphProto) -> bool:
    """Remove the names that earlier nodes of the same graph have, in bodies too; tell whether there was one."""
    seen: set[str] = set()
    found = False
    for node in graph.node:
        if node.name and node.name in seen:
            node.name, found = "", True
        seen.add(node.name)
        for attribute in node.attribute:
            for body in (*((attribute.g,) if attribute.HasField("g") else ()), *attribute.graphs):
                found = _forget_repeated_names(body) or found
    return found


def read_type(proto: onnx.TypeProto) -> ValueType | None:
    """Return the value type in `proto`, or None when it is empty. Raises ModelError for kinds outside ONNX."""
    kind = proto.WhichOneof("value")
    if kind is None:
        return None
    body = getattr(proto, kind)
    if kind in ("tensor_type", "sparse_tensor_type"):
        if not body.elem_type:
            return None
        make = TensorType if kind == "tensor_type" else SparseTensorType
        return make(dtype_name(body.elem_type), _shape(body))
    if kind in ("sequence_type", "optional_type"):
        element = read_type(body.elem_type)
        wrap = SequenceType if kind == "sequence_type" else OptionalType
        return None if element is None else wrap(element)
    if kind == "map_type":
        value = read_type(body.value_type)
        return None if value is None else MapType(dtype_name(body.key_type), value)
    raise ModelError(f"values of kind {kind} are not part of ONNX")


def read_attribute(proto: onnx.AttributeProto) -> Attribute:
    """Return the attribute in `proto`. Raises ModelError when it is broken."""
    return _Reader(None).attribute(proto)


def read_tensor(proto: onnx.TensorProto) -> Tensor:
    """Return the tensor in `proto`. Raises ModelError when it is broken, and when its data are in another file."""
    return decode_tensor(proto, None)


def _shape(body: Any) -> tuple[Dim, ...] | None:  # noqa: ANN401 - a protobuf message
    if not body.HasField("shape"):
        return None
    return tuple(
        dim.dim_value if dim.HasField("dim_value") else (_name(dim.dim_param) or None) for dim in body.shape.dim
    )


def _parse(data: bytes) -> onnx.ModelProto:
    try:
        return onnx.ModelProto.FromString(data)
    except DecodeError:
        raise ModelError("these bytes are no ONNX model (protobuf cannot parse them)") from None


def _name(value: str | bytes) -> str:
    """Return `value`, which protobuf gives as bytes when it is not UTF-8."""
    if isinstance(value, bytes):
        raise ModelError(f"the name {value!r} is not UTF-8")
    return value


def _names(values: Iterable[str | bytes]) -> tuple[str, ...]:
    return tuple(map(_name, values))


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def _opsets(imports: Iterable[Any]) -> Mapping[str, int]:
    opsets: dict[str, int] = {}
    for entry in imports:
        if opsets.setdefault(_name(entry.domain), entry.version) != entry.version:
            raise ModelError(f"operator set {entry.domain!r} is imported in two versions")
    return opsets


def _types(infos: Iterable[Any]) -> dict[str, ValueType]:
    found = ((_name(info.name), read_type(info.type)) for info in infos)
    return {name: value_type for name, value_type in found if value_type is not None}


def _infos(infos: Iterable[Any]) -> tuple[ValueInfo, ...]:
    return tuple(ValueInfo(_name(info.name), read_type(info.type)) for info in infos)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads messages; `folder` contains external data, None when the model did not come from a file."""

    folder: Path | None

    def model(self, proto: Any) -> Model:  # noqa: ANN401 - protobuf messages, here and below
        if not proto.HasField("graph"):
            raise ModelError("these bytes are no ONNX model (there is no graph)")
        return Model(
            self.graph(proto.graph),
            _opsets(proto.opset_import),
            tuple(self.function(function) for function in proto.functions),
            proto.ir_version,
        )

    def graph(self, proto: Any) -> Graph:  # noqa: ANN401
        initializers: dict[str, Tensor] = {}
        sparse: dict[str, SparseTensor] = {}
        for tensor in proto.initializer:
            if tensor.name in initializers:
                raise ModelError(f"two initializers are named {tensor.name!r}")
            initializers[_name(tensor.name)] = decode_tensor(tensor, self.folder)
        for item in proto.sparse_initializer:
            if item.values.name in sparse or item.values.name in initializers:
                raise ModelError(f"two initializers are named {item.values.name!r}")
            sparse[_name(item.values.name)] = self.sparse(item)
        return Graph(
            _name(proto.name),
            _infos(proto.input),
            _infos(proto.output),
            tuple(map(self.node, proto.node)),
            initializers,
            sparse,
            _types(proto.value_info),
        )

    def node(self, proto: Any) -> Node:  # noqa: ANN401
        return Node(
            _name(proto.op_type),
            _names(proto.input),
            _names(proto.output),
            self.attributes(proto.attribute, proto.op_type),
            _name(proto.domain),
            _name(proto.name),
            _name(proto.overload),
        )

    def function(self, proto: Any) -> Function:  # noqa: ANN401
        return Function(
            _name(proto.domain),
            _name(proto.name),
            _names(proto.input),
            _names(proto.output),
            tuple(map(self.node, proto.node)),
            _opsets(proto.opset_import),
            _names(proto.attribute),
            self.attributes(proto.attribute_proto, proto.name),
            _name(proto.overload),
            _types(proto.value_info),
        )

    def attributes(self, protos: Any, owner: str) -> Mapping[str, Attribute]:  # noqa: ANN401
        if not protos:
            return NO_ATTRIBUTES
        found = {_name(proto.name): self.attribute(proto) for proto in protos}
        if len(found) != len(protos):
            raise ModelError(f"{owner} has two attributes of one name")
        return found

    def attribute(self, proto: Any) -> Attribute:  # noqa: ANN401
        kind = _KINDS.get(proto.type)
        if proto.ref_attr_name:
            return Attribute("ref", _name(proto.ref_attr_name), kind)
        if kind is None:  # models of the first IR version do not contain the kind
            given = [kind for kind, field in _FIELDS.items() if field in {f.name for f, _ in proto.ListFields()}]
            if len(given) != 1:
                raise ModelError(f"attribute {proto.name!r} does not say its kind")
            kind = given[0]
        value = getattr(proto, _FIELDS[kind])
        if kind in ("int", "float"):
            return Attribute(kind, value)
        if kind in ("ints", "floats"):
            return Attribute(kind, tuple(value))
        one = cast(AttributeKind, kind.removesuffix("s"))
        if one == kind:
            return Attribute(kind, self.compound(kind, value, proto.name))
        return Attribute(kind, tuple(self.compound(one, item, proto.name) for item in value))

    def compound(self, kind: AttributeKind, value: Any, name: str) -> object:  # noqa: ANN401
        if kind == "string":
            return _text(value)
        if kind == "tensor":
            return decode_tensor(value, self.folder)
        if kind == "graph":
            return self.graph(value)
        if kind == "sparse":
            return self.sparse(value)
        value_type = read_type(value)
        if value_type is None:
            raise ModelError(f"attribute {name!r} holds a type that says nothing")
        return value_type

    def sparse(self, proto: Any) -> SparseTensor:  # noqa: ANN401
        return SparseTensor(
            decode_tensor(proto.values, self.folder), decode_tensor(proto.indices, self.folder), tuple(proto.dims)
        )
