"""Serialisation of models to protobuf bytes without message objects.

A generator emits hundreds of models per second, and building message objects would take most of its time. Fragments
that repeat (names, types, heads of tensors, attributes) are cached. Field numbers are those of onnx.proto; fields
are in ascending order, and repeated numbers are not packed, as onnx.proto requires. The bytes are those that protobuf
itself writes. This module needs no onnx, so that the conformance kit of targets works where onnx is not installed.
"""

import struct
from collections.abc import Iterable, Mapping
from functools import lru_cache

from miscompile.base.dtypes import DTYPES
from miscompile.core.case import Dim
from miscompile.core.small import is_packed, pack
from miscompile.core.tensor import Tensor
from miscompile.graph.equality import float_bits
from miscompile.graph.model import (
    Attribute,
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
    ValueType,
)

_KEPT = 1 << 14
"""The most cached fragments of each kind; a campaign reuses names, small shapes and attributes."""

_PACKED = frozenset(dtype for dtype in DTYPES if is_packed(dtype))
_SMALLEST, _LARGEST = -(1 << 63), (1 << 63) - 1
_KINDS = {
    "float": 1, "int": 2, "string": 3, "tensor": 4, "graph": 5, "floats": 6, "ints": 7, "strings": 8, "tensors": 9,
    "graphs": 10, "sparse": 11, "sparses": 12, "type": 13, "types": 14,
}  # fmt: skip
"""Numbers of AttributeProto.AttributeType."""
_FLOAT, _INT, _STRING, _FLOATS, _INTS = (_KINDS[kind] for kind in ("float", "int", "string", "floats", "ints"))
_REF = b"\xaa\x01"
_SPARSE = {"sparse": b"\xb2\x01", "sparses": b"\xba\x01"}
_MESSAGES = {"tensor": 0x2A, "graph": 0x32, "tensors": 0x52, "graphs": 0x5A, "type": 0x72, "types": 0x7A}
"""Tags of an AttributeProto's fields that are messages; those of sparse tensors stand behind its type."""


def model_bytes(model: Model) -> bytes:
    """Return `model` as a serialised ModelProto. Raises ValueError for an integer of more than 64 bits."""
    functions = [b"\xca\x01" + _delimited(_function(function)) for function in model.functions]
    return b"".join((assembled(model.ir_version, _fields(model.graph), model.opsets), *functions))


def assembled(ir_version: int, fields: Iterable[bytes], opsets: Mapping[str, int]) -> bytes:
    """Return the serialised ModelProto of a graph given by its fields, which must be in ascending order."""
    graph = b"".join(fields)
    imports = [_opset(domain, version) for domain, version in opsets.items()]
    return b"".join((_head(ir_version), b"\x3a", varint(len(graph)), graph, *imports))


def node_field(node: Node) -> bytes:
    """Return a node as field 1 of a GraphProto."""
    return _framed(0x0A, node_bytes(node))


def operator_field(op: str) -> bytes:
    """Return the name of an operator as field 4 of a NodeProto."""
    return _FOURTH[op]


def name_field(name: str) -> bytes:
    """Return a graph's name as field 2 of its GraphProto."""
    return _text(0x12, name)


def tensor_field(name: str, value: Tensor) -> bytes:
    """Return an initialiser as field 5 of a GraphProto."""
    return _framed(0x2A, tensor_bytes(value, name))


def info_body(name: str, dtype: str, shape: tuple[Dim, ...] | None) -> bytes:
    """Return a dense tensor's ValueInfoProto with its length, which `INPUT` or `OUTPUT` makes a field of a graph."""
    field, written = _FIRST[name], _type_field(dtype, shape)
    return b"".join((varint(len(field) + len(written)), field, written))


INPUT, OUTPUT = b"\x5a", b"\x62"
"""Tags of a graph's inputs (field 11) and outputs (field 12)."""


def node_bytes(node: Node) -> bytes:
    """Return `node` as a serialised NodeProto."""
    parts = [_FIRST[name] for name in node.inputs]
    parts += [_SECOND[name] for name in node.outputs]
    if node.name:
        parts.append(_text(0x1A, node.name))
    parts.append(_FOURTH[node.op])
    parts += [attribute_field(name, attribute) for name, attribute in node.attributes.items()]
    if node.domain:
        parts.append(_text(0x3A, node.domain))
    if node.overload:
        parts.append(_text(0x42, node.overload))
    return b"".join(parts)


def attribute_field(name: str, attribute: Attribute) -> bytes:
    """Return an attribute as field 5 of a NodeProto. Raises ValueError for an integer of more than 64 bits."""
    kind, value = attribute.kind, attribute.value
    if kind == "int":
        return _int(name, value)
    if kind == "float":  # not cached by value, because 0.0 and -0.0 are equal
        return _floats(name, b"\x15", (value,), _FLOAT)
    if kind == "string":
        return _string(name, value)
    if kind == "ints":
        return _ints(name, value)
    if kind == "floats":
        return _floats(name, b"\x3d", value, _FLOATS)
    return _framed(0x2A, _FIRST[name] + _compound(attribute))


def _compound(attribute: Attribute) -> bytes:
    """Return the fields of an AttributeProto behind its name, for the kinds that are neither numbers nor one text."""
    kind, value = attribute.kind, attribute.value
    if kind == "ref":
        number = b"" if attribute.ref_kind is None else _kind(_KINDS[attribute.ref_kind])
        return number + _REF + _delimited(value.encode())
    number = _kind(_KINDS[kind])
    if kind == "strings":
        return b"".join((*[_framed(0x4A, _escaped(item)) for item in value], number))
    items = value if kind.endswith("s") else (value,)
    if kind in _SPARSE:
        return b"".join((number, *(_SPARSE[kind] + _delimited(_sparse(item)) for item in items)))
    return b"".join((*[_framed(_MESSAGES[kind], _message(item)) for item in items], number))


def _message(value: Tensor | Graph | ValueType) -> bytes:
    match value:
        case Tensor():
            return tensor_bytes(value)
        case Graph():
            return b"".join(_fields(value))
        case _:
            return type_bytes(value)


def tensor_bytes(value: Tensor, name: str = "") -> bytes:
    """Return `value` as a serialised TensorProto."""
    head, named = _tensor_head(value.dtype, value.array.shape), _EIGHTH[name] if name else b""
    if value.dtype == "string":
        items = (_escaped(item) if isinstance(item, str) else item for item in value.array.ravel())
        return b"".join((head, *(_framed(0x32, item) for item in items), named))
    raw = pack(value.array, DTYPES[value.dtype].bits) if value.dtype in _PACKED else value.array.tobytes()
    return b"".join((head, named, b"\x4a", varint(len(raw)), raw))


def type_bytes(value_type: ValueType) -> bytes:
    """Return `value_type` as a serialised TypeProto."""
    match value_type:
        case TensorType(dtype, shape):
            return tensor_type_bytes(dtype, shape)
        case SparseTensorType(dtype, shape):
            return _framed(0x42, _shaped(dtype, shape))
        case SequenceType(element):
            return _framed(0x22, _framed(0x0A, type_bytes(element)))
        case OptionalType(element):
            return _framed(0x4A, _framed(0x0A, type_bytes(element)))
        case MapType(key, value):
            return _framed(0x2A, b"\x08" + varint(DTYPES[key].code) + _framed(0x12, type_bytes(value)))


@lru_cache(_KEPT)
def tensor_type_bytes(dtype: str, shape: tuple[Dim, ...] | None) -> bytes:
    """Return the type of a dense tensor as a serialised TypeProto."""
    return _framed(0x0A, _shaped(dtype, shape))


def _shaped(dtype: str, shape: tuple[Dim, ...] | None) -> bytes:
    body = b"\x08" + varint(DTYPES[dtype].code)
    if shape is not None:
        body += _framed(0x12, b"".join([_framed(0x0A, _dimension(size)) for size in shape]))
    return body


@lru_cache(_KEPT)
def _type_field(dtype: str, shape: tuple[Dim, ...] | None) -> bytes:
    return _framed(0x12, tensor_type_bytes(dtype, shape))


def varint(number: int) -> bytes:
    """Return a number as protobuf's base-128 varint; negative ones as 64-bit two's complement."""
    return _SMALL[number] if 0 <= number < 1024 else _varint(number)


def _varint(number: int) -> bytes:
    rest = number & 0xFFFFFFFFFFFFFFFF
    found = bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)


_SMALL = tuple(map(_varint, range(1024)))


class _Texts(dict[str, bytes]):
    """Text fields of one field number by their text: a dictionary that fills itself, because that is the fastest
    lookup."""

    def __init__(self, tag: int) -> None:
        super().__init__()
        self._tag = tag

    def __missing__(self, text: str) -> bytes:
        if len(self) >= _KEPT:
            self.clear()
        field = self[text] = _text(self._tag, text)
        return field


_FIRST, _SECOND, _FOURTH, _EIGHTH = _Texts(0x0A), _Texts(0x12), _Texts(0x22), _Texts(0x42)
"""Names of values and attributes; names of outputs; operators; names of tensors."""


def _fields(graph: Graph) -> list[bytes]:
    """Return the fields of a GraphProto."""
    fields = [node_field(node) for node in graph.nodes]
    fields.append(name_field(graph.name))
    fields += [tensor_field(name, value) for name, value in graph.initializers.items()]
    fields += [_info_field(INPUT, info.name, info.type) for info in graph.inputs]
    fields += [_info_field(OUTPUT, info.name, info.type) for info in graph.outputs]
    fields += [_info_field(b"\x6a", name, value_type) for name, value_type in graph.types.items()]
    fields += [_framed(0x7A, _sparse(value, name)) for name, value in graph.sparse_initializers.items()]
    return fields


def _function(function: Function) -> bytes:
    """Return a serialised FunctionProto."""
    parts = [_text(0x0A, function.name)]
    for tag, names in ((0x22, function.inputs), (0x2A, function.outputs), (0x32, function.attributes)):
        parts += [_text(tag, name) for name in names]
    parts += [_framed(0x3A, node_bytes(node)) for node in function.nodes]
    parts += [_framed(0x4A, _import(domain, version)) for domain, version in function.opsets.items()]
    parts.append(_text(0x52, function.domain))
    # An attribute is field 5 of a node, and field 11 here.
    parts += [b"\x5a" + attribute_field(name, value)[1:] for name, value in function.defaults.items()]
    parts += [_info_field(b"\x62", name, value_type) for name, value_type in function.types.items()]
    if function.overload:
        parts.append(_text(0x6A, function.overload))
    return b"".join(parts)


def _sparse(sparse: SparseTensor, name: str = "") -> bytes:
    """Return a serialised SparseTensorProto."""
    dims = [b"\x18" + varint(size) for size in sparse.shape]
    parts = _framed(0x0A, tensor_bytes(sparse.values, name)), _framed(0x12, tensor_bytes(sparse.indices))
    return b"".join((*parts, *dims))


def _info_field(tag: bytes, name: str, value_type: ValueType | None) -> bytes:
    if isinstance(value_type, TensorType):
        return tag + info_body(name, value_type.dtype, value_type.shape)
    written = b"" if value_type is None else _framed(0x12, type_bytes(value_type))
    return tag + _delimited(_FIRST[name] + written)


def _delimited(body: bytes) -> bytes:
    return varint(len(body)) + body


def _framed(tag: int, body: bytes) -> bytes:
    return b"%c%b%b" % (tag, varint(len(body)), body)


def _text(tag: int, text: str) -> bytes:
    return _framed(tag, text.encode())


@lru_cache(64)
def _head(ir_version: int) -> bytes:
    return b"\x08" + varint(ir_version) + _text(0x12, "miscompile")


@lru_cache(256)
def _opset(domain: str, version: int) -> bytes:
    return _framed(0x42, _import(domain, version))


def _import(domain: str, version: int) -> bytes:
    return _text(0x0A, domain) + b"\x10" + varint(version)


def _dimension(size: int | str | None) -> bytes:
    if size is None:
        return b""
    return _text(0x12, size) if isinstance(size, str) else b"\x08" + varint(size)


@lru_cache(_KEPT)
def _tensor_head(dtype: str, shape: tuple[int, ...]) -> bytes:
    return b"".join(b"\x08" + varint(size) for size in shape) + b"\x10" + varint(DTYPES[dtype].code)


def _field(name: str, value: bytes, kind: int) -> bytes:
    """Return field 5 of a NodeProto: an AttributeProto of one value field, its type last."""
    return _framed(0x2A, b"".join((_FIRST[name], value, _kind(kind))))


def _kind(number: int) -> bytes:
    return b"\xa0\x01" + varint(number)


def _whole(value: int) -> bytes:
    if not _SMALLEST <= value <= _LARGEST:
        raise ValueError(f"{value} does not fit in 64 bits")
    return varint(int(value))


@lru_cache(_KEPT)
def _int(name: str, value: int) -> bytes:
    return _field(name, b"\x18" + _whole(value), _INT)


@lru_cache(_KEPT)
def _ints(name: str, values: tuple[int, ...]) -> bytes:
    return _field(name, b"".join([b"\x40" + _whole(value) for value in values]), _INTS)


@lru_cache(_KEPT)
def _string(name: str, value: str) -> bytes:
    return _field(name, _framed(0x22, _escaped(value)), _STRING)


def _escaped(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")


def _floats(name: str, tag: bytes, values: Iterable[float], kind: int) -> bytes:
    try:
        numbers = [tag + struct.pack("<f", value) for value in values]
    except OverflowError:  # outside the range of float32: infinite
        numbers = [tag + float_bits(value).to_bytes(4, "little") for value in values]
    return _field(name, b"".join(numbers), kind)
