"""The same model in other bytes: alternative and optional encodings in a file.

Readers differ more than compilers do: typed fields or raw bytes, declared inner types, documentation, metadata, omitted
operands written as empty names, and explicit default attributes. Source: onnx.proto of the ONNX repository,
https://onnx.ai/onnx/repo-docs/IR.html
"""

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal
from urllib.parse import quote

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from miscompile.base.errors import ModelError, SpecError
from miscompile.graph.emit import type_proto
from miscompile.graph.model import TensorType, ValueType
from miscompile.graph.read import read
from miscompile.graph.typing import inferred_types
from miscompile.ops.registry import schema
from miscompile.transforms.exact.placed import Placed
from miscompile.transforms.exact.scopes import declared_symbols, without_invented

Aspect = Literal["tensors", "info", "notes", "operands", "attributes", "ir"]
ASPECTS: tuple[Aspect, ...] = ("tensors", "info", "notes", "operands", "attributes", "ir")
"""Parts of a file with several encodings: elements of tensors, types of inner values, documentation and metadata,
optional operands, default attributes and the order of attributes, the IR version.
"""

_Opsets = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class StoragePart:
    """One part: the protobuf message to change, and the operator set version of its nodes.

    `name` is the value of a part of aspect `info`, whose message is the graph.
    """

    place: str
    aspect: Aspect
    message: Any
    opset: int = 0
    name: str = ""


def parts_of(proto: onnx.ModelProto) -> Iterator[StoragePart]:
    """Yield the parts of `proto`, including those with only one encoding."""
    functions = {(function.domain, function.name) for function in proto.functions}
    yield StoragePart("ir", "ir", proto)
    yield StoragePart("notes", "notes", proto)
    yield from _of_graph(proto.graph, "", _opsets(proto.opset_import), functions)
    for function in proto.functions:
        path = f"fn:{_written(function.domain)}:{_written(function.name)}:{_written(function.overload)}"
        yield from _of_nodes(function.node, path, _opsets(function.opset_import), functions)


def _opsets(imports: Iterable[Any]) -> dict[str, int]:
    return {"" if entry.domain == "ai.onnx" else entry.domain: entry.version for entry in imports}


def _written(name: str) -> str:
    return quote(name, safe="")


def _at(path: str, name: str) -> str:
    return f"{path}/{_written(name)}" if path else _written(name)


def _of_graph(
    graph: onnx.GraphProto, path: str, opsets: _Opsets, functions: set[tuple[str, str]]
) -> Iterator[StoragePart]:
    yield StoragePart(f"notes:{path}:graph", "notes", graph)
    for tensor in graph.initializer:
        if can_be_restored(tensor):
            yield StoragePart(f"tensors:{_at(path, tensor.name)}", "tensors", tensor)
    yield from _infos(graph, path)
    yield from _of_nodes(graph.node, path, opsets, functions)


def _infos(graph: onnx.GraphProto, path: str) -> Iterator[StoragePart]:
    """Yield the inner values with declared types, and in the main graph also those without.

    Results of operators of other domains are left out, because inference may not know them.
    """
    told = {info.name for info in graph.value_info}
    outputs = {info.name for info in graph.output}
    for node in graph.node:
        for name in node.output:
            if name and node.domain in ("", "ai.onnx") and name not in outputs and (name in told or not path):
                yield StoragePart(f"info:{_at(path, name)}", "info", graph, name=name)


def _of_nodes(nodes: Any, path: str, opsets: _Opsets, functions: set[tuple[str, str]]) -> Iterator[StoragePart]:  # noqa: ANN401
    for node in nodes:
        place = _at(path, next(filter(None, node.output), ""))
        yield StoragePart(f"notes:{place}", "notes", node)
        domain = "" if node.domain == "ai.onnx" else node.domain
        opset = opsets.get(domain, 0)
        if (node.domain, node.op_type) not in functions and schema(node.op_type, opset, domain) is not None:
            yield StoragePart(f"operands:{place}", "operands", node, opset)
            yield StoragePart(f"attributes:{place}", "attributes", node, opset)
        for attribute in node.attribute:
            if attribute.HasField("t") and can_be_restored(attribute.t):
                yield StoragePart(f"tensors:{place}:{attribute.name}", "tensors", attribute.t)
            if attribute.HasField("g"):
                yield from _of_graph(attribute.g, f"{place}/{attribute.name}", opsets, functions)
            for at, body in enumerate(attribute.graphs):
                yield from _of_graph(body, f"{place}/{attribute.name}.{at}", opsets, functions)


_METADATA = 10
"""IR version from which nodes, values and graphs have metadata; before, only the model has."""

_NOTES = ("", "a note", "\n", "é" * 40, "{}", "%s", "x" * 2000)


@dataclass(frozen=True, slots=True)
class Storage(Placed):
    """Serialises a model differently. Places are parts of the file, such as `node:y:attributes`.

    `aspects` are those that may change; `ir` is the IR version that a model may be raised to.
    """

    stream_name: ClassVar[str] = "Stored"

    aspects: tuple[Aspect, ...] = ASPECTS
    ir: int = 10

    def __post_init__(self) -> None:
        """Raise SpecError for values that mean nothing."""
        if not set(self.aspects) <= {*ASPECTS} or not self.aspects or not 0 <= self.share <= 1:
            raise SpecError(f"aspects are some of {'+'.join(ASPECTS)}, and share a number from 0 to 1")

    def places_of_bytes(self, payload: bytes) -> tuple[str, ...]:
        """Return the parts of a serialised model that have another encoding. Raises ModelError for other bytes."""
        return tuple(part.place for part in self._parts(_parsed(payload)))

    def apply_bytes(self, payload: bytes) -> bytes:
        """Return another serialisation of the model in `payload`.

        Raises RejectedDraft when no part has another encoding, ModelError when `payload` is no model.
        """
        proto = _parsed(payload)
        types = _types(proto)
        parts = list(self._parts(proto))
        picked = self.picked(part.place for part in parts)
        for part in parts:
            if part.place in picked:
                self._write(part, proto, types)
        return bytes(proto.SerializeToString())

    def _parts(self, proto: onnx.ModelProto) -> list[StoragePart]:
        wanted = [part for part in parts_of(proto) if part.aspect in self.aspects]
        return [part for part in wanted if part.aspect != "ir" or proto.ir_version < self.ir]

    def _write(self, part: StoragePart, proto: onnx.ModelProto, types: Mapping[str, ValueType]) -> None:
        rng = self.stream(part.place)
        match part.aspect:
            case "tensors":
                restored(part.message)
            case "operands":
                change_operands(part.message, part.opset, rng)
            case "attributes":
                change_attributes(part.message, part.opset, rng)
            case "notes":
                _annotate(part.message, rng, metadata=proto.ir_version >= _METADATA)
            case "info":
                _change_info(part, types)
            case "ir":
                proto.ir_version = rng.randint(proto.ir_version + 1, self.ir)


def _parsed(payload: bytes) -> onnx.ModelProto:
    try:
        return onnx.ModelProto.FromString(payload)
    except DecodeError:
        raise ModelError("these bytes are no ONNX model (protobuf cannot parse them)") from None


def _types(proto: onnx.ModelProto) -> dict[str, ValueType]:
    """Return the inferred types; none where inference rejects the model."""
    try:
        found = inferred_types(proto, strict=False)
    except ModelError:
        return {}
    symbols = declared_symbols(read(proto).graph)
    return {name: without_invented(kind, symbols) for name, kind in found.items()}


def _annotate(message: onnx.NodeProto | onnx.GraphProto, rng: random.Random, *, metadata: bool) -> None:
    message.doc_string = rng.choice(_NOTES)
    if metadata and not message.metadata_props:
        message.metadata_props.add(key=rng.choice(("k", "pkg.onnxscript.source", "")), value=rng.choice(_NOTES))


def _change_info(part: StoragePart, types: Mapping[str, ValueType]) -> None:
    """Remove the declared type of an inner value, or declare the inferred one."""
    graph: onnx.GraphProto = part.message
    for at, info in enumerate(graph.value_info):
        if info.name == part.name:
            del graph.value_info[at]
            return
    known = types.get(part.name)
    if isinstance(known, TensorType):
        graph.value_info.add(name=part.name).type.CopyFrom(type_proto(known))


_SPELLED = frozenset({onnx.AttributeProto.INT, onnx.AttributeProto.FLOAT, onnx.AttributeProto.STRING})
"""Kinds of defaults that are written explicitly; not lists, because those of RNN, GRU and LSTM depend on the direction.
"""

_COUNTED = frozenset({"Optional", "SplitToSequence"})
"""Operators whose shape inference in onnx (1.23) counts the written operands, even if the last one is empty."""


def change_operands(node: onnx.NodeProto, opset: int, rng: random.Random) -> None:
    """Strip empty names at the end of `node`'s operands and results, or write some for omitted operands.

    Names for results are not added, because some operators change their meaning with the number of results.
    """
    known = schema(node.op_type, opset, "" if node.domain == "ai.onnx" else node.domain)
    if known is None:
        return
    for names, least in ((node.input, 0), (node.output, 1)):
        while len(names) > least and not names[-1]:
            del names[-1]
    if node.op_type in _COUNTED:
        return
    options = [formal.option.name for formal in known.inputs]
    if "Variadic" not in options and all(option == "Optional" for option in options[len(node.input) :]):
        node.input.extend([""] * rng.randint(0, max(0, len(options) - len(node.input))))


def change_attributes(node: onnx.NodeProto, opset: int, rng: random.Random) -> None:
    """Write the defaults of `node` explicitly, or omit attributes that equal them, and shuffle its attributes."""
    known = schema(node.op_type, opset, "" if node.domain == "ai.onnx" else node.domain)
    if known is None:
        return
    defaults = {
        name: formal.default_value for name, formal in known.attributes.items() if formal.default_value.type in _SPELLED
    }
    given = list(node.attribute)
    if rng.random() < 0.5:
        there = {attribute.name for attribute in given}
        given += [default for name, default in sorted(defaults.items()) if name not in there]
    else:
        given = [attribute for attribute in given if not _is_default(attribute, defaults.get(attribute.name))]
    copies = [_copy(attribute) for attribute in rng.sample(given, len(given))]
    del node.attribute[:]
    node.attribute.extend(copies)


def _is_default(attribute: onnx.AttributeProto, default: Any) -> bool:  # noqa: ANN401 - a protobuf message or None
    """Tell whether `attribute` equals its default."""
    if default is None or attribute.ref_attr_name or attribute.type != default.type:
        return False
    return bool((attribute.i, attribute.f, attribute.s) == (default.i, default.f, default.s))


def _copy(attribute: onnx.AttributeProto) -> onnx.AttributeProto:
    copied = onnx.AttributeProto()
    copied.CopyFrom(attribute)
    return copied


_FIELDS: Mapping[int, tuple[str, str]] = {
    1: ("float_data", "<f4"), 11: ("double_data", "<f8"), 7: ("int64_data", "<i8"), 6: ("int32_data", "<i4"),
    12: ("uint64_data", "<u4"), 13: ("uint64_data", "<u8"), 5: ("int32_data", "<i2"), 4: ("int32_data", "<u2"),
    3: ("int32_data", "|i1"), 2: ("int32_data", "|u1"), 9: ("int32_data", "|u1"), 10: ("int32_data", "<u2"),
    16: ("int32_data", "<u2"), 17: ("int32_data", "|u1"), 18: ("int32_data", "|u1"), 19: ("int32_data", "|u1"),
    20: ("int32_data", "|u1"),
}  # fmt: skip
"""By element type: the typed field, and the type of its elements as raw bytes. Elements of less than a byte, strings
and complex numbers are left unchanged.
"""


def can_be_restored(tensor: onnx.TensorProto) -> bool:
    """Tell whether `tensor` has a typed field, elements in the file itself, and no NaN.

    The payload of a NaN need not survive the conversion to a typed field.
    """
    if tensor.data_type not in _FIELDS or tensor.data_location == onnx.TensorProto.EXTERNAL:
        return False
    field, kind = _FIELDS[tensor.data_type]
    if not tensor.HasField("raw_data"):
        return len(getattr(tensor, field)) > 0
    elements = np.frombuffer(tensor.raw_data, kind)
    return elements.size > 0 and not (elements.dtype.kind == "f" and bool(np.isnan(elements).any()))


def restored(tensor: onnx.TensorProto) -> None:
    """Move the elements of `tensor` from raw bytes to the typed field, or back."""
    field, kind = _FIELDS[tensor.data_type]
    if tensor.HasField("raw_data"):
        getattr(tensor, field).extend(np.frombuffer(tensor.raw_data, kind).tolist())
        tensor.ClearField("raw_data")
    else:
        tensor.raw_data = np.array(list(getattr(tensor, field))).astype(kind).tobytes()
        tensor.ClearField(field)
