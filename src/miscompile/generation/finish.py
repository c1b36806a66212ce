"""From a scope to a case: outputs, the model, the feeds, and which outputs are exact.

One graph makes several programs: what is constant and what is an input decides as much over an optimiser's paths as
the operators do, and a graph costs more to think out than to write down again in another setting.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from miscompile.base.errors import RejectedDraft
from miscompile.core.case import Case, Feed, Port, Program
from miscompile.core.tensor import Tensor
from miscompile.generation.scope import Scope, tensor_type
from miscompile.graph.emit import emit
from miscompile.graph.model import Graph, Model, ValueInfo
from miscompile.ops.registry import specs
from miscompile.ops.values import draw

IR_VERSION = 10
"""Newest IR version that all supported compilers read, for opsets up to 22."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Which inputs become constants (`frozen`, with their elements), and which drawn constants become inputs."""

    frozen: Mapping[str, Tensor] = field(default_factory=dict)
    opened: frozenset[str] = frozenset()


AS_BUILT = Setting()

_OPEN_TO_INPUTS = frozenset({"MatMul", "Gemm", "Conv", "Where", "Concat", "BatchNormalization", "LayerNormalization"})
"""Operators besides the elementwise ones whose constants may be inputs for every target that takes the operator."""


def finish(
    scope: Scope, outputs: Iterable[str], feeds: int, recipe: Mapping[str, Any], setting: Setting = AS_BUILT
) -> Case:
    """Close the scope: `outputs` in order, unused inputs and constants left out, `feeds` sets of inputs drawn.

    Raises RejectedDraft when no output is given.
    """
    model = to_model(scope, tuple(outputs), setting)
    ports = tuple(_port(scope, info.name) for info in model.graph.inputs)
    results = tuple(_port(scope, info.name, exact=True) for info in model.graph.outputs)
    program = Program("onnx", emit(model), ports, results)
    return Case(program, tuple(_feed(scope, ports) for _ in range(max(1, feeds))), recipe)


def draw_setting(scope: Scope, flip: float) -> Setting:
    """Draw another setting of the same graph: each input and each constant changes its part with probability `flip`."""
    rng = scope.rng
    frozen = {name: _tensor(scope, name) for name in scope.inputs if scope.uses[name] and rng.random() < flip}
    wanted = {name for name in sorted(scope.drawn) if rng.random() < flip}
    for node in scope.nodes if wanted else ():
        if node.inputs and node.op not in _OPEN_TO_INPUTS and specs()[node.op].shapes == "inferred":
            wanted.difference_update(node.inputs)
    return Setting(frozen, frozenset(wanted))


def to_model(scope: Scope, outputs: tuple[str, ...], setting: Setting = AS_BUILT) -> Model:
    """Return the scope's graph with `outputs`. Raises RejectedDraft when there are none."""
    if not outputs:
        raise RejectedDraft("the graph has no output")
    uses, opened, frozen = scope.uses, setting.opened, setting.frozen
    names = (*(name for name in scope.inputs if name not in frozen), *scope.pinned, *sorted(opened))
    inputs = tuple(_info(scope, name) for name in names if uses[name])
    kept = {name: value for name, value in scope.initializers.items() if uses[name] and name not in opened}
    nodes = tuple(node for node in scope.nodes if node.op != "Constant" or uses[node.outputs[0]])
    graph = Graph("main", inputs, tuple(_info(scope, name) for name in outputs), nodes, {**kept, **frozen})
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
    if name in scope.initializers:
        return scope.initializers[name]
    operand = scope.operands[name]
    return Tensor(operand.dtype, draw(scope.rng, operand.dtype, operand.shape, scope.inputs[name]))
