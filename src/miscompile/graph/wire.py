"""Serialisation of common models to protobuf bytes without message objects.

A generator emits hundreds of models per second, and building message objects would take most of its time. Fragments
that repeat (names, types, heads of tensors, attributes) are cached. Field numbers are those of onnx.proto; fields
are in ascending order, and repeated numbers are not packed, as onnx.proto requires. The functions return None for
uncommon models (with functions, subgraphs, sparse tensors, packed element types); `emit` then builds a ModelProto.
"""

import struct
from collections.abc import Iterable, Mapping
from functools import lru_cache

from miscompile.base.dtypes import DTYPES
from miscompile.core.case import Dim
from miscompile.core.tensor import Tensor
from miscompile.graph.model import Attribute, Graph, Model, Node, TensorType, ValueType

_KEPT = 1 << 14
"""The most cached fragments of each kind; a campaign reuses names, small shapes and attributes."""

_BYTEWISE = frozenset(dtype for dtype, info in DTYPES.items() if info.bits >= 8)
_SMALLEST, _LARGEST = -(1 << 63), (1 << 63) - 1
_FLOAT, _INT, _STRING, _TENSOR, _FLOATS, _INTS, _STRINGS = 1, 2, 3, 4, 6, 7, 8
"""Numbers of AttributeProto.AttributeType."""


def model_bytes(model: Model) -> bytes | None:
    """Return `model` as a serialised ModelProto, or None when it holds something uncommon."""
    fields = None if model.functions else _fields(model.graph)
    return None if fields is None else assembled(model.ir_version, fields, model.opsets)


def assembled(ir_version: int, fields: Iterable[bytes], opsets: Mapping[str, int]) -> bytes:
    """Return the serialised ModelProto of a graph given by its fields, which must be in ascending order."""
    graph = b"".join(fields)
    imports = [_opset(domain, version) for domain, version in opsets.items()]
    return b"".join((_head(ir_version), b"\x3a", varint(len(graph)), graph, *imports))


def node_field(node: Node) -> bytes | None:
    """Return a node as field 1 of a GraphProto, or None when it has an uncommon attribute."""
    body = node_bytes(node)
    return None if body is None else b"".join((b"\x0a", varint(len(body)), body))


def name_field(name: str) -> bytes:
    """Return a graph's name as field 2 of its GraphProto."""
    return _text(0x12, name)


def tensor_field(name: str, value: Tensor) -> bytes | None:
    """Return an initialiser as field 5 of a GraphProto, or None when an element is narrower than a byte."""
    body = tensor_bytes(value, name)
    return None if body is None else b"".join((b"\x2a", varint(len(body)), body))


def info_body(name: str, dtype: str, shape: tuple[Dim, ...] | None) -> bytes:
    """Return a dense tensor's ValueInfoProto with its length, which `INPUT` or `OUTPUT` makes a field of a graph."""
    field, written = _FIRST[name], _type_field(dtype, shape)
    return b"".join((varint(len(field) + len(written)), field, written))


INPUT, OUTPUT = b"\x5a", b"\x62"
"""Tags of a graph's inputs (field 11) and outputs (field 12)."""


def node_bytes(node: Node) -> bytes | None:
    """Return `node` as a serialised NodeProto, or None when it has an uncommon attribute."""
    parts = [_FIRST[name] for name in node.inputs]
    parts += [_SECOND[name] for name in node.outputs]
    if node.name:
        parts.append(_text(0x1A, node.name))
    parts.append(_FOURTH[node.op])
    for name, attribute in node.attributes.items():
        written = attribute_field(name, attribute)
        if written is None:
            return None
        parts.append(written)
    if node.domain:
        parts.append(_text(0x3A, node.domain))
    if node.overload:
        parts.append(_text(0x42, node.overload))
    return b"".join(parts)


def attribute_field(name: str, attribute: Attribute) -> bytes | None:
    """Return an attribute as a field of a NodeProto, or None when its kind is uncommon or a number too large."""
    kind, value = attribute.kind, attribute.value
    if kind == "int":
        return _int(name, value) if _SMALLEST <= value <= _LARGEST else None
    if kind == "float":  # not cached by value, because 0.0 and -0.0 are equal
        return _floats(name, b"\x15", (value,), _FLOAT)
    if kind == "string":
        return _string(name, value)
    if kind == "ints":
        return _ints(name, value) if all(_SMALLEST <= item <= _LARGEST for item in value) else None
    if kind == "floats":
        return _floats(name, b"\x3d", value, _FLOATS)
    if kind == "strings":
        return _field(name, b"".join(map(_item, value)), _STRINGS)
    if kind == "tensor":
        tensor = tensor_bytes(value)
        return None if tensor is None else _field(name, b"".join((b"\x2a", varint(len(tensor)), tensor)), _TENSOR)
    return None


def tensor_bytes(value: Tensor, name: str = "") -> bytes | None:
    """Return `value` as a serialised TensorProto, or None when its elements are not laid out in whole bytes."""
    if value.dtype not in _BYTEWISE:
        return None
    raw = value.array.tobytes()
    return b"".join((
        _tensor_head(value.dtype, value.array.shape), _EIGHTH[name] if name else b"", b"\x4a", varint(len(raw)), raw,
    ))  # fmt: skip


def type_bytes(value_type: ValueType) -> bytes | None:
    """Return `value_type` as a serialised TypeProto, or None unless it is a dense tensor's."""
    return tensor_type_bytes(value_type.dtype, value_type.shape) if isinstance(value_type, TensorType) else None


@lru_cache(_KEPT)
def tensor_type_bytes(dtype: str, shape: tuple[Dim, ...] | None) -> bytes:
    """Return the type of a dense tensor as a serialised TypeProto."""
    body = b"\x08" + varint(DTYPES[dtype].code)
    if shape is not None:
        body += _framed(0x12, b"".join([_framed(0x0A, _dimension(size)) for size in shape]))
    return _framed(0x0A, body)


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


def _fields(graph: Graph) -> list[bytes] | None:
    """Return the fields of a GraphProto, or None when it holds something uncommon."""
    if graph.sparse_initializers:
        return None
    fields = [node_field(node) for node in graph.nodes]
    fields.append(name_field(graph.name))
    fields += [tensor_field(name, value) for name, value in graph.initializers.items()]
    fields += [_info_field(INPUT, info.name, info.type) for info in graph.inputs]
    fields += [_info_field(OUTPUT, info.name, info.type) for info in graph.outputs]
    fields += [_info_field(b"\x6a", name, value_type) for name, value_type in graph.types.items()]
    written = [field for field in fields if field is not None]
    return written if len(written) == len(fields) else None


def _info_field(tag: bytes, name: str, value_type: ValueType | None) -> bytes | None:
    if value_type is None:
        return b"".join((tag, varint(len(_FIRST[name])), _FIRST[name]))
    if not isinstance(value_type, TensorType):
        return None
    return tag + info_body(name, value_type.dtype, value_type.shape)


def _framed(tag: int, body: bytes) -> bytes:
    return b"%c%b%b" % (tag, varint(len(body)), body)


def _text(tag: int, text: str) -> bytes:
    return _framed(tag, text.encode())


@lru_cache(64)
def _head(ir_version: int) -> bytes:
    return b"\x08" + varint(ir_version) + _text(0x12, "miscompile")


@lru_cache(256)
def _opset(domain: str, version: int) -> bytes:
    return _framed(0x42, _text(0x0A, domain) + b"\x10" + varint(version))


def _dimension(size: int | str | None) -> bytes:
    if size is None:
        return b""
    return _text(0x12, size) if isinstance(size, str) else b"\x08" + varint(size)


@lru_cache(_KEPT)
def _tensor_head(dtype: str, shape: tuple[int, ...]) -> bytes:
    return b"".join(b"\x08" + varint(size) for size in shape) + b"\x10" + varint(DTYPES[dtype].code)


def _field(name: str, value: bytes, kind: int) -> bytes:
    """Return field 5 of a NodeProto: an AttributeProto of one value field, its type last."""
    return _framed(0x2A, b"".join((_FIRST[name], value, b"\xa0\x01", varint(kind))))


@lru_cache(_KEPT)
def _int(name: str, value: int) -> bytes:
    return _field(name, b"\x18" + varint(int(value)), _INT)


@lru_cache(_KEPT)
def _ints(name: str, values: tuple[int, ...]) -> bytes:
    return _field(name, b"".join([b"\x40" + varint(int(value)) for value in values]), _INTS)


@lru_cache(_KEPT)
def _string(name: str, value: str) -> bytes:
    return _field(name, _framed(0x22, _escaped(value)), _STRING)


def _item(value: str) -> bytes:
    return _framed(0x4A, _escaped(value))


def _escaped(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")


def _floats(name: str, tag: bytes, values: Iterable[float], kind: int) -> bytes | None:
    try:
        numbers = [tag + struct.pack("<f", value) for value in values]
    except OverflowError:  # outside the range of float32: protobuf decides
        return None
    return _field(name, b"".join(numbers), kind)
