"""From a scope to a case: outputs, the model, the feeds, and which outputs are exact."""

from collections.abc import Iterable, Mapping
from typing import Any

from miscompile.base.errors import RejectedDraft
from miscompile.core.case import Case, Feed, Port, Program
from miscompile.core.tensor import Tensor
from miscompile.generation.scope import Scope, tensor_type
from miscompile.graph.emit import emit
from miscompile.graph.model import Graph, Model, ValueInfo
from miscompile.ops.values import draw

IR_VERSION = 10
"""Newest IR version that all supported compilers read, for opsets up to 22."""


def finish(scope: Scope, outputs: Iterable[str], feeds: int, recipe: Mapping[str, Any]) -> Case:
    """Close the scope: `outputs` in order, unused inputs and constants left out, `feeds` sets of inputs drawn.

    Raises RejectedDraft when no output is given.
    """
    model = to_model(scope, tuple(outputs))
    ports = tuple(_port(scope, info.name) for info in model.graph.inputs)
    results = tuple(_port(scope, info.name, exact=True) for info in model.graph.outputs)
    program = Program("onnx", emit(model), ports, results)
    return Case(program, tuple(_feed(scope, ports) for _ in range(max(1, feeds))), recipe)


def to_model(scope: Scope, outputs: tuple[str, ...]) -> Model:
    """Return the scope's graph with `outputs`. Raises RejectedDraft when there are none."""
    if not outputs:
        raise RejectedDraft("the graph has no output")
    uses = scope.uses
    inputs = tuple(_info(scope, name) for name in (*scope.inputs, *scope.pinned) if uses[name])
    constants = {name: value for name, value in scope.initializers.items() if uses[name]}
    nodes = tuple(node for node in scope.nodes if node.op != "Constant" or uses[node.outputs[0]])
    graph = Graph("main", inputs, tuple(_info(scope, name) for name in outputs), nodes, constants)
    return Model(graph, {"": scope.opset}, (), IR_VERSION)


def leaves(scope: Scope) -> list[str]:
    """Return the operator results that nothing uses, in order."""
    return [name for name, op in scope.producer.items() if op and op != "Constant" and not scope.uses[name]]


def _info(scope: Scope, name: str) -> ValueInfo:
    operand = scope.operands[name]
    return ValueInfo(name, tensor_type(operand.dtype, operand.shape))


def _port(scope: Scope, name: str, *, exact: bool = False) -> Port:
    operand = scope.operands[name]
    return Port(name, operand.dtype, operand.shape, exact and operand.facts.exact)


def _feed(scope: Scope, ports: tuple[Port, ...]) -> Feed:
    return tuple(_tensor(scope, port.name) for port in ports)


def _tensor(scope: Scope, name: str) -> Tensor:
    if name in scope.pinned:
        return scope.pinned[name]
    operand = scope.operands[name]
    return Tensor(operand.dtype, draw(scope.rng, operand.dtype, operand.shape, scope.inputs[name]))
