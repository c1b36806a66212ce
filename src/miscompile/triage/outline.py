"""Outlines of serialised programs: predicates are held against them before anything of a program is converted.

Most drafts of a campaign contain the operators of some known bug, and few contain the bug. Reading and typing such a
program takes as long as drawing it. An outline converts an attribute, a type or a constant when a condition refers to
it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from miscompile.base.errors import ModelError
from miscompile.core.tensor import Tensor
from miscompile.graph.edges import reads
from miscompile.graph.model import NO_ATTRIBUTES, Attribute, Node
from miscompile.graph.randomness import deterministic, plain
from miscompile.graph.read import read_attribute, read_tensor, read_type
from miscompile.graph.typing import inferred_graph
from miscompile.triage.predicate import Described, DescribedGraph

_BODIES = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)

V = TypeVar("V")


class _Converted(Mapping[str, V]):
    """Messages by name, each converted when it is looked up first."""

    def __init__(self, messages: Mapping[str, Any], convert: Callable[[Any], V]) -> None:
        self._messages, self._convert = messages, convert
        self._known: dict[str, V] = {}

    def __getitem__(self, name: str) -> V:
        if name not in self._known:
            self._known[name] = self._convert(self._messages[name])
        return self._known[name]

    def __contains__(self, name: object) -> bool:
        return name in self._messages

    def __iter__(self) -> Iterator[str]:
        return iter(self._messages)

    def __len__(self) -> int:
        return len(self._messages)


def outlined(payload: bytes, *, infer: bool = False) -> Described:
    """Return a serialised ModelProto in the form that predicates are held against, converted as far as they ask.

    Values have the types that the model declares, or with `infer` those that onnx's inference of the whole model
    finds as well. So a predicate that matches may not match `described`, which also knows types inside bodies; one that
    does not match here does not match there. Raises ModelError when `payload` is no ModelProto; a condition on
    a broken attribute, type or constant raises it as well.
    """
    try:
        proto = onnx.load_model_from_string(payload)
    except DecodeError as error:
        raise ModelError(f"this is no ONNX model: {error}") from None
    graph = proto.graph
    if infer:
        with suppress(ModelError):  # a model that breaks the operators' rules has the types that it declares
            graph = inferred_graph(proto)
    functions = (DescribedGraph(tuple(map(_node, one.node)), {}, {}) for one in proto.functions)
    return Described((*_graphs(graph, {}, {}), *functions))


def _graphs(graph: Any, outer_types: Mapping[str, Any], outer: Mapping[str, Any]) -> Iterator[DescribedGraph]:  # noqa: ANN401 - protobuf
    """Yield a graph and its bodies; it may capture values, whose types and constants the outer graph knows."""
    types, constants = dict(outer_types), dict(outer)
    for declarations in (graph.value_info, graph.input, graph.output):
        types.update((info.name, info.type) for info in declarations)
    constants.update((tensor.name, tensor) for tensor in graph.initializer)
    nodes, bodies = [], []
    for proto in graph.node:
        inner = [body for one in proto.attribute if one.type in _BODIES for body in (one.graphs or (one.g,))]
        node = _node(proto)
        value = next((one for one in proto.attribute if one.name == "value"), None) if node.op == "Constant" else None
        if value is not None and value.type == onnx.AttributeProto.TENSOR:
            constants[node.outputs[0]] = value.t
        elif _computed(node, constants, bodies=bool(inner)):
            constants.update(dict.fromkeys(node.outputs))
        nodes.append(node)
        bodies += inner
    yield DescribedGraph(tuple(nodes), _Converted(types, read_type), _Converted(constants, _tensor))
    for body in bodies:
        yield from _graphs(body, types, constants)


def _tensor(proto: Any) -> Tensor | None:  # noqa: ANN401
    """Return a constant; None for one that the compiler computes from others."""
    return None if proto is None else read_tensor(proto)


def _node(proto: Any) -> Node:  # noqa: ANN401
    """Return a node whose attributes are converted when they are looked up."""
    attributes: Mapping[str, Attribute] = NO_ATTRIBUTES
    if proto.attribute:
        attributes = _Converted({one.name: one for one in proto.attribute}, read_attribute)
    return Node(proto.op_type, tuple(proto.input), tuple(proto.output), attributes, proto.domain)


def _computed(node: Node, constants: Mapping[str, Any], *, bodies: bool) -> bool:
    """Tell whether the compiler can compute the results of a node; `bodies` says whether it has any."""
    for name in node.inputs:
        if name and name not in constants:
            return False
    if not bodies:
        return deterministic(node)
    return plain(node) and all(name in constants for name in reads(node))
