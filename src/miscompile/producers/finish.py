"""Turning a scope into cases: outputs, model, feeds, and the set of exact outputs.

One graph gives several programs that differ in which values are constants and which are inputs. That choice affects an
optimiser's paths as much as the operators do, and generating a graph costs more than serialising it again.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from miscompile.base.errors import RejectedDraft, UsageError
from miscompile.core.case import Case, Port, Program
from miscompile.core.tensor import Tensor
from miscompile.graph.edges import reads
from miscompile.graph.model import Graph, Model, ValueInfo
from miscompile.graph.wire import INPUT, OUTPUT, assembled, info_body, name_field, node_field, tensor_field
from miscompile.ops.registry import specs
from miscompile.ops.values import draw
from miscompile.producers.scope import Scope, tensor_type

_IR_VERSIONS = ((28, 14), (25, 13), (24, 12), (23, 11), (21, 10), (19, 9), (15, 8), (13, 7))
"""First opset of each IR version, the newest first (https://onnx.ai/onnx/repo-docs/Versioning.html)."""

_NAME = "main"

_MOST_DRAFTS = 2000
"""Rejected drafts in a row after which there is nothing to generate."""


@dataclass(frozen=True, slots=True)
class InputSetting:
    """Which inputs become constants (`frozen`, with their elements), and which drawn constants become inputs."""

    frozen: Mapping[str, Tensor] = field(default_factory=dict)
    opened: frozenset[str] = frozenset()


AS_BUILT = InputSetting()


def ir_version_of(opset: int) -> int:
    """Return the oldest IR version that allows `opset`, so that old releases can read the models."""
    return next((version for first, version in _IR_VERSIONS if opset >= first), _IR_VERSIONS[-1][1])


class Finisher:
    """Serialises the programs of one graph. The scope must not change in the meantime.

    Nodes, constants and ports that the programs share are serialised once. Emitting a `Model` for every program would
    cost a third of the time of generating the graph.
    """

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        uses = scope.uses
        self.nodes = [node for node in scope.nodes if node.op != "Constant" or uses[node.outputs[0]]]
        self.constants = {name: value for name, value in scope.initializers.items() if uses[name]}
        self._fields = self._shared()
        self._infos: dict[str, bytes] = {}
        self._inputs: dict[str, Port] = {}
        self._outputs: dict[str, Port] = {}

    def case(
        self, outputs: Sequence[str], feeds: int, recipe: Mapping[str, Any], setting: InputSetting = AS_BUILT
    ) -> Case:
        """Return a case with `outputs` and freshly drawn feeds. Raises RejectedDraft when no output is given.

        There are at least `feeds` feeds, and enough for every input that is fed several values in turn.
        """
        if not outputs:
            raise RejectedDraft("the graph has no output")
        names = self._fed(setting)
        payload = self._payload(names, outputs, setting)
        ports, results = self._ports(names, self._inputs), self._ports(outputs, self._outputs, results=True)
        turns = max([feeds, 1, *(len(self.scope.cycled[name]) for name in names if name in self.scope.cycled)])
        drawn = tuple([tuple([self._tensor(name, turn) for name in names]) for turn in range(turns)])
        return Case(Program("onnx", payload, ports, results), drawn, recipe)

    def model(self, outputs: Sequence[str], setting: InputSetting = AS_BUILT) -> Model:
        """Return the graph as a model; its bytes are the payload of the case with these outputs and this setting."""
        inputs = tuple([self._info(name) for name in self._fed(setting)])
        kept = {name: value for name, value in self.constants.items() if name not in setting.opened}
        results = tuple([self._info(name) for name in outputs])
        graph = Graph(_NAME, inputs, results, tuple(self.nodes), {**kept, **setting.frozen})
        return Model(graph, {"": self.scope.opset}, (), ir_version_of(self.scope.opset))

    def draw_setting(self, flip: float) -> InputSetting:
        """Draw another setting: each input becomes a constant, or vice versa, with probability `flip`."""
        scope, rng = self.scope, self.scope.rng
        fed = [*scope.inputs, *scope.cycled]
        frozen = {name: self._tensor(name) for name in fed if scope.uses[name] and rng.random() < flip}
        wanted = {name for name in sorted(scope.drawn) if rng.random() < flip}
        return InputSetting(frozen, self.openable(wanted))

    def openable(self, constants: Iterable[str]) -> frozenset[str]:
        """Return those of the drawn `constants` that may be inputs for every target that takes their operators."""
        wanted = set(constants)
        for node in self.scope.nodes if wanted else ():
            if node.op not in specs():
                wanted.difference_update(reads(node))  # nodes with bodies, and the values that these capture
            elif node.inputs and not specs()[node.op].open_to_inputs:
                wanted.difference_update(node.inputs)
        return frozenset(wanted)

    def _fed(self, setting: InputSetting) -> list[str]:
        """Return the names of the inputs in order."""
        scope, frozen = self.scope, setting.frozen
        names = [name for name in (*scope.inputs, *scope.cycled) if name not in frozen]
        names += scope.pinned
        names += sorted(setting.opened)
        return [name for name in names if scope.uses[name]]

    def _shared(self) -> tuple[bytes, dict[str, bytes]]:
        """Return the serialised nodes, and constants by name."""
        known, first = self.scope.serialised, self.scope.nodes[: self.scope.taken]
        for node in first:
            if id(node) not in known.nodes:
                known.nodes[id(node)] = node_field(node)
        nodes = [known.nodes[id(node)] for node in first]
        nodes += [node_field(node) for node in self.nodes[len(first) :]]
        shared = known.constants
        constants = {name: shared.get(name) or tensor_field(name, value) for name, value in self.constants.items()}
        return b"".join((*nodes, name_field(_NAME))), constants

    def _payload(self, inputs: Sequence[str], outputs: Sequence[str], setting: InputSetting) -> bytes:
        """Return the serialised model."""
        opened = setting.opened
        nodes, constants = self._fields
        fields = [nodes]
        fields += [field for name, field in constants.items() if name not in opened] if opened else constants.values()
        fields += [tensor_field(name, value) for name, value in setting.frozen.items()]
        for tag, names in ((INPUT, inputs), (OUTPUT, outputs)):
            for name in names:
                fields += (tag, self._infos.get(name) or self._write_info(name))
        return assembled(ir_version_of(self.scope.opset), fields, {"": self.scope.opset})

    def _write_info(self, name: str) -> bytes:
        operand = self.scope.operands[name]
        body = self._infos[name] = info_body(name, operand.dtype, operand.shape)
        return body

    def _info(self, name: str) -> ValueInfo:
        operand = self.scope.operands[name]
        return ValueInfo(name, tensor_type(operand.dtype, operand.shape))

    def _ports(self, names: Iterable[str], known: dict[str, Port], *, results: bool = False) -> tuple[Port, ...]:
        for name in names:
            if name not in known:
                operand = self.scope.operands[name]
                known[name] = Port(name, operand.dtype, operand.shape, results and operand.facts.exact)
        return tuple([known[name] for name in names])

    def _tensor(self, name: str, turn: int = 0) -> Tensor:
        """Return the elements of input `name` in feed number `turn`: newly drawn, unless its values are fixed."""
        scope = self.scope
        if name in scope.cycled:
            return scope.cycled[name][turn % len(scope.cycled[name])]
        span = scope.inputs.get(name)
        if span is None:
            return scope.pinned.get(name) or scope.initializers[name]
        operand = scope.operands[name]
        return Tensor(operand.dtype, draw(scope.rng, operand.dtype, operand.shape, span))


def next_case(waiting: deque[Case], draft: Callable[[], Iterable[Case]], advice: str) -> Case:
    """Return the first of the `waiting` cases; where there is none, `draft` makes some, again after RejectedDraft.

    Raises UsageError with `advice` when every draft is rejected.
    """
    for _ in range(_MOST_DRAFTS):
        if waiting:
            return waiting.popleft()
        with suppress(RejectedDraft):
            waiting.extend(draft())
    raise UsageError(advice)


def variants(
    finisher: Finisher, feeds: int, recipe: Mapping[str, Any], count: int, *, inner: float, flip: float
) -> Iterator[Case]:
    """Yield the variants 1 to `count` - 1 of a graph, which differ in outputs, constants and inputs.

    Inner results are outputs with probability `inner`; `flip` is the one of `Finisher.draw_setting`.
    """
    scope = finisher.scope
    ends, others = leaves(scope), inner_results(scope)
    for number in range(1, count):
        chosen = [*ends, *(name for name in others if scope.rng.random() < inner)]
        setting = finisher.draw_setting(flip)
        yield finisher.case(chosen, feeds, {**recipe, "variant": number}, setting)


def finish(scope: Scope, outputs: Iterable[str], feeds: int, recipe: Mapping[str, Any]) -> Case:
    """Return one case of the graph as it was built; see `Finisher.case`."""
    return Finisher(scope).case(tuple(outputs), feeds, recipe)


def leaves(scope: Scope) -> list[str]:
    """Return the operator results that nothing uses, in order."""
    return [name for name, op in scope.producer.items() if op and op != "Constant" and not scope.uses[name]]


def inner_results(scope: Scope) -> list[str]:
    """Return the operator results that something uses, in order."""
    return [name for name, op in scope.producer.items() if op and op != "Constant" and scope.uses[name]]
