"""The same model in other bytes: what a file may say in several ways, or leave out.

Readers differ more than compilers do: typed fields against raw bytes, inner types told or not, documentation, metadata,
left-out operands written as empty names, and default attributes spelled out. Source: onnx.proto of the ONNX repository,
https://onnx.ai/onnx/repo-docs/IR.html
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from miscompile.base.errors import ModelError, SpecError
from miscompile.graph.emit import type_proto
from miscompile.graph.model import TensorType, ValueType
from miscompile.graph.read import read
from miscompile.graph.typing import inferred_types
from miscompile.transforms.exact.placed import Placed
from miscompile.transforms.exact.scopes import declared_symbols, without_invented
from miscompile.transforms.exact.storage_nodes import change_attributes, change_operands
from miscompile.transforms.exact.storage_parts import ASPECTS, Aspect, Part, parts_of
from miscompile.transforms.exact.storage_tensors import restored

_METADATA = 10
"""IR version from which nodes, values and graphs have metadata; before, only the model has."""

_NOTES = ("", "a note", "\n", "é" * 40, "{}", "%s", "x" * 2000)


@dataclass(frozen=True, slots=True)
class Stored(Placed):
    """Presents the bytes of a model otherwise. Places are parts of the file, such as `node:y:attributes`.

    `aspects` are those that may change; `ir` is the IR version that a model may be raised to.
    """

    aspects: tuple[Aspect, ...] = ASPECTS
    ir: int = 10

    def __post_init__(self) -> None:
        """Raise SpecError for values that mean nothing."""
        if not set(self.aspects) <= {*ASPECTS} or not self.aspects or not 0 <= self.share <= 1:
            raise SpecError(f"aspects are some of {'+'.join(ASPECTS)}, and share a number from 0 to 1")

    def places_of_bytes(self, payload: bytes) -> tuple[str, ...]:
        """Return the parts of a serialised model that can be written otherwise. Raises ModelError for other bytes."""
        return tuple(part.place for part in self._parts(_parsed(payload)))

    def apply_bytes(self, payload: bytes) -> bytes:
        """Return a serialised model that means what `payload` means.

        Raises RejectedDraft when there is nothing to write otherwise, ModelError when `payload` is no model.
        """
        proto = _parsed(payload)
        types = _types(proto)
        parts = list(self._parts(proto))
        picked = self.picked(part.place for part in parts)
        for part in parts:
            if part.place in picked:
                self._write(part, proto, types)
        return bytes(proto.SerializeToString())

    def _parts(self, proto: onnx.ModelProto) -> list[Part]:
        wanted = [part for part in parts_of(proto) if part.aspect in self.aspects]
        return [part for part in wanted if part.aspect != "ir" or proto.ir_version < self.ir]

    def _write(self, part: Part, proto: onnx.ModelProto, types: Mapping[str, ValueType]) -> None:
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
                _tell(part, types)
            case "ir":
                proto.ir_version = rng.randint(proto.ir_version + 1, self.ir)


def _parsed(payload: bytes) -> onnx.ModelProto:
    try:
        return onnx.ModelProto.FromString(payload)
    except DecodeError:
        raise ModelError("these bytes are no ONNX model (protobuf cannot parse them)") from None


def _types(proto: onnx.ModelProto) -> dict[str, ValueType]:
    """Return the types that inference finds by itself; none where it refuses the model."""
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


def _tell(part: Part, types: Mapping[str, ValueType]) -> None:
    """Forget the type of an inner value, or write down the one that is inferred."""
    graph: onnx.GraphProto = part.message
    for at, info in enumerate(graph.value_info):
        if info.name == part.name:
            del graph.value_info[at]
            return
    known = types.get(part.name)
    if isinstance(known, TensorType):
        graph.value_info.add(name=part.name).type.CopyFrom(type_proto(known))
