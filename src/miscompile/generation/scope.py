"""The graph under construction: values with their facts, nodes, inputs and constants, and a way back.

Nodes are typed by onnx's own inference as they are added, so the graph is valid at every moment.
"""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass

from miscompile.base.dtypes import PLAIN
from miscompile.base.errors import ModelError, RejectedDraft
from miscompile.core.tensor import Array, Tensor
from miscompile.graph.infer import infer
from miscompile.graph.model import NO_ATTRIBUTES, Attribute, Node, TensorType, ValueType
from miscompile.ops.facts import Facts, measure, settle
from miscompile.ops.registry import schema, specs
from miscompile.ops.spec import Call, Limits, Operand, Shape
from miscompile.ops.support import Support
from miscompile.ops.values import Range, Style, draw

_STRUCTURAL_SIZE = 64
"""Known operands up to this many elements are shown to inference; larger ones never decide a shape."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment to come back to."""

    names: int
    nodes: int
    fresh: int


class Scope:
    """Values and nodes of one case. Names are given in order, so a rollback cuts the newest ones off."""

    def __init__(
        self, rng: random.Random, opset: int, limits: Limits, style: Style, support: Support, elements: int = 8192
    ) -> None:
        self.rng = rng
        self.opset = opset
        self.limits = limits
        self.style = style
        self.support = support
        self.nodes: list[Node] = []
        self.operands: dict[str, Operand] = {}
        self.types: dict[str, ValueType] = {}
        self.pool: dict[str, list[Operand]] = {}
        self.producer: dict[str, str] = {}
        self.uses: dict[str, int] = {}
        self.inputs: dict[str, Range] = {}
        self.pinned: dict[str, Tensor] = {}
        self.initializers: dict[str, Tensor] = {}
        self._elements = elements
        self._fresh = 0

    def mark(self) -> Mark:
        """Remember this moment."""
        return Mark(len(self.operands), len(self.nodes), self._fresh)

    def rollback(self, mark: Mark) -> None:
        """Forget everything that came after `mark`."""
        for name in list(self.operands)[mark.names :]:
            operand = self.operands.pop(name)
            self.pool[operand.dtype].remove(operand)
            del self.types[name], self.producer[name], self.uses[name]
            for table in (self.inputs, self.pinned, self.initializers):
                table.pop(name, None)
        for node in self.nodes[mark.nodes :]:
            for name in node.inputs:
                if name in self.uses:
                    self.uses[name] -= 1
        del self.nodes[mark.nodes :]
        self._fresh = mark.fresh

    def new_input(self, dtype: str, shape: Shape, span: Range) -> Operand:
        """Add a graph input whose elements will be drawn from `span`."""
        name = self._name("x")
        self.inputs[name] = span
        return self._register(Operand(name, dtype, shape, span.facts()), "")

    def new_constant(self, value: Tensor, *, as_node: bool = False) -> Operand:
        """Add a constant: an initialiser, or a Constant node."""
        name = self._name("c")
        operand = Operand(name, value.dtype, value.shape, measure(value), value.array)
        if as_node:
            self.nodes.append(Node("Constant", (), (name,), {"value": Attribute("tensor", value)}))
        else:
            self.initializers[name] = value
        return self._register(operand, "Constant" if as_node else "")

    def new_pinned(self, value: Tensor) -> Operand:
        """Add a graph input that is always fed `value`, because output types depend on its elements."""
        name = self._name("p")
        self.pinned[name] = value
        return self._register(Operand(name, value.dtype, value.shape, measure(value), value.array), "")

    def drawn_constant(self, dtype: str, shape: Shape, span: Range) -> Operand:
        """Add an initialiser with elements drawn from `span`."""
        value = Tensor(dtype, draw(self.rng, dtype, shape, span))
        name = self._name("c")
        self.initializers[name] = value
        facts = measure(value) if value.array.size else span.facts()
        return self._register(Operand(name, dtype, shape, facts, value.array), "")

    def apply(self, call: Call) -> tuple[Operand, ...]:
        """Add a call and return its outputs.

        Raises RejectedDraft when the call is invalid, undefined for some elements, too large, able to overflow, or
        not taken by the target; the scope is then as it was.
        """
        names = tuple("" if operand is None else operand.name for operand in call.inputs)
        outputs = tuple(f"v{self._fresh + place}" for place in range(call.outputs))
        node = Node(call.op, names, outputs, call.attributes, call.domain)
        types = self._infer(node, call)
        if not self.support.admits(call, types, self.opset):
            raise RejectedDraft(f"{call.op} is not taken by the target")
        facts = self._facts(call, types)
        self._fresh += call.outputs
        self.nodes.append(node)
        for name in names:
            if name:
                self.uses[name] += 1
        return tuple(
            self._register(Operand(name, kind.dtype, kind.shape, fact), call.op)  # type: ignore[arg-type]
            for name, kind, fact in zip(outputs, types, facts, strict=True)
        )

    def call(self, op: str, *inputs: Operand | None, attributes: Mapping[str, Attribute] = NO_ATTRIBUTES) -> Operand:
        """Add a call with one output and return that."""
        return self.apply(Call(op, inputs, attributes))[0]

    def _infer(self, node: Node, call: Call) -> tuple[TensorType, ...]:
        form = schema(call.op, self.opset, call.domain)
        if form is None or len(call.inputs) < form.min_input or None in call.inputs[: form.min_input]:
            raise RejectedDraft(f"{call.op} has no such form in opset {self.opset}")
        known = {
            operand.name: Tensor(operand.dtype, operand.value)
            for operand in call.inputs
            if operand is not None and operand.value is not None and operand.value.size <= _STRUCTURAL_SIZE
        }
        try:
            types = infer(node, self.types, self.opset, known)
        except ModelError as error:
            raise RejectedDraft(str(error)) from None
        for kind in types:
            if not isinstance(kind, TensorType) or kind.shape is None or kind.dtype not in PLAIN:
                raise RejectedDraft(f"{call.op}: the output type is not known")
            if not all(isinstance(size, int) for size in kind.shape):
                raise RejectedDraft(f"{call.op}: the output shape is not known")
            if math.prod(kind.shape) > self._elements:  # type: ignore[arg-type]
                raise RejectedDraft(f"{call.op}: the output is too large")
        return types  # type: ignore[return-value]

    def _facts(self, call: Call, types: tuple[TensorType, ...]) -> tuple[Facts, ...]:
        spec = specs().get(call.op)
        if spec is None:
            raise RejectedDraft(f"{call.op} has no spec")
        if not spec.defined(call):
            raise RejectedDraft(f"{call.op} may be undefined on these operands")
        inputs = tuple(operand.facts for operand in call.inputs if operand is not None)
        try:
            bounds = spec.bounds(call, types)
        except (OverflowError, ZeroDivisionError, ValueError):
            raise RejectedDraft(f"{call.op} could overflow") from None
        return tuple(
            settle(kind.dtype, bound, spec.exactness, inputs) for kind, bound in zip(types, bounds, strict=True)
        )

    def _register(self, operand: Operand, producer: str) -> Operand:
        self.operands[operand.name] = operand
        self.types[operand.name] = TensorType(operand.dtype, operand.shape)
        self.pool.setdefault(operand.dtype, []).append(operand)
        self.producer[operand.name] = producer
        self.uses[operand.name] = 0
        return operand

    def _name(self, letter: str) -> str:
        name = f"{letter}{self._fresh}"
        self._fresh += 1
        return name


def as_array(operand: Operand) -> Array:
    """Return the elements of a known operand."""
    assert operand.value is not None, f"{operand.name} is not known"
    return operand.value
