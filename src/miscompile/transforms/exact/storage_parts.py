"""The parts of a ModelProto that can be written otherwise, each with a place that stays when others change."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

import onnx

from miscompile.ops.registry import schema
from miscompile.transforms.exact.storage_tensors import can_be_restored

Aspect = Literal["tensors", "info", "notes", "operands", "attributes", "ir"]
ASPECTS: tuple[Aspect, ...] = ("tensors", "info", "notes", "operands", "attributes", "ir")
"""What can be written otherwise: elements of tensors, types of inner values, documentation and metadata, optional
operands, default attributes and the order of attributes, the IR version."""

_Opsets = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Part:
    """One part: the protobuf message that is to be changed, and the version of the operators that its nodes mean.

    `name` is the value that a part of aspect `info` is about; its message is the graph.
    """

    place: str
    aspect: Aspect
    message: Any
    opset: int = 0
    name: str = ""


def parts_of(proto: onnx.ModelProto) -> Iterator[Part]:
    """Yield the parts of `proto`, whether or not something about them can change."""
    functions = {(function.domain, function.name) for function in proto.functions}
    yield Part("ir", "ir", proto)
    yield Part("notes", "notes", proto)
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


def _of_graph(graph: onnx.GraphProto, path: str, opsets: _Opsets, functions: set[tuple[str, str]]) -> Iterator[Part]:
    yield Part(f"notes:{path}:graph", "notes", graph)
    for tensor in graph.initializer:
        if can_be_restored(tensor):
            yield Part(f"tensors:{_at(path, tensor.name)}", "tensors", tensor)
    yield from _infos(graph, path)
    yield from _of_nodes(graph.node, path, opsets, functions)


def _infos(graph: onnx.GraphProto, path: str) -> Iterator[Part]:
    """Yield the inner values: those whose types are told, and in the main graph also the others.

    What operators of other domains give is left alone: inference may know nothing of them.
    """
    told = {info.name for info in graph.value_info}
    outputs = {info.name for info in graph.output}
    for node in graph.node:
        for name in node.output:
            if name and node.domain in ("", "ai.onnx") and name not in outputs and (name in told or not path):
                yield Part(f"info:{_at(path, name)}", "info", graph, name=name)


def _of_nodes(nodes: Any, path: str, opsets: _Opsets, functions: set[tuple[str, str]]) -> Iterator[Part]:  # noqa: ANN401
    for node in nodes:
        place = _at(path, next(filter(None, node.output), ""))
        yield Part(f"notes:{place}", "notes", node)
        domain = "" if node.domain == "ai.onnx" else node.domain
        opset = opsets.get(domain, 0)
        if (node.domain, node.op_type) not in functions and schema(node.op_type, opset, domain) is not None:
            yield Part(f"operands:{place}", "operands", node, opset)
            yield Part(f"attributes:{place}", "attributes", node, opset)
        for attribute in node.attribute:
            if attribute.HasField("t") and can_be_restored(attribute.t):
                yield Part(f"tensors:{place}:{attribute.name}", "tensors", attribute.t)
            if attribute.HasField("g"):
                yield from _of_graph(attribute.g, f"{place}/{attribute.name}", opsets, functions)
            for at, body in enumerate(attribute.graphs):
                yield from _of_graph(body, f"{place}/{attribute.name}.{at}", opsets, functions)
