"""The graph under construction: values with their facts, nodes, inputs and constants, and a way back.

Nodes are typed by onnx's own inference as they are added, so the graph is valid at every moment.
"""

import math
import random
from collections.abc import Hashable, Mapping
from functools import cache, lru_cache
from typing import NamedTuple

from miscompile.base.dtypes import PLAIN
from miscompile.base.errors import ModelError, RejectedDraft
from miscompile.core.tensor import Array, Tensor
from miscompile.graph.infer import infer_call
from miscompile.graph.model import NO_ATTRIBUTES, Attribute, Node, TensorType
from miscompile.ops.facts import Facts, measure, settle
from miscompile.ops.registry import schema, specs
from miscompile.ops.shapes import promised_shape
from miscompile.ops.spec import Call, Limits, Operand, OpSpec, Shape
from miscompile.ops.support import Support
from miscompile.ops.values import Range, Style, draw

_PLAIN = frozenset(PLAIN)
_STRUCTURAL_SIZE = 64
"""Known operands up to this many elements are shown to inference; larger ones never decide a shape."""

_MEASURED_SIZE = 16
"""Drawn constants up to this many elements are measured; larger ones come near the ends of their range anyway."""

_DTYPES: dict[Hashable, tuple[str, ...]] = {}
_MOST_DTYPES = 1 << 16
"""Output dtypes of operators whose shapes need no inference, as inference gave them; a pure function's memory."""


class Mark(NamedTuple):
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
        self.pool: dict[str, list[Operand]] = {}
        self.producer: dict[str, str] = {}
        self.uses: dict[str, int] = {}
        self.inputs: dict[str, Range] = {}
        self.pinned: dict[str, Tensor] = {}
        self.initializers: dict[str, Tensor] = {}
        self.drawn: set[str] = set()
        self._elements = elements
        self._fresh = 0

    def mark(self) -> Mark:
        """Remember this moment."""
        return Mark(len(self.operands), len(self.nodes), self._fresh)

    def rollback(self, mark: Mark) -> None:
        """Forget everything that came after `mark`."""
        while len(self.operands) > mark.names:  # tables keep the order of insertion, so the newest is the last
            name, operand = self.operands.popitem()
            self.pool[operand.dtype].pop()
            del self.producer[name], self.uses[name]
            for table in (self.inputs, self.pinned, self.initializers):
                table.pop(name, None)
            self.drawn.discard(name)
        while len(self.nodes) > mark.nodes:
            for name in self.nodes.pop().inputs:
                if name in self.uses:
                    self.uses[name] -= 1
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
        self.drawn.add(name)
        facts = measure(value) if 0 < value.array.size <= _MEASURED_SIZE else span.facts()
        return self._register(Operand(name, dtype, shape, facts, value.array), "")

    def apply(self, call: Call) -> tuple[Operand, ...]:
        """Add a call and return its outputs.

        Raises RejectedDraft when the call is invalid, undefined for some elements, too large, able to overflow, or
        not taken by the target; the scope is then as it was.
        """
        spec = specs().get(call.op)
        if spec is None:
            raise RejectedDraft(f"{call.op} has no spec")
        types = self._infer(call, spec)
        if not self.support.admits(call, types, self.opset):
            raise RejectedDraft(f"{call.op} is not taken by the target")
        facts = self._facts(call, types, spec)
        names = tuple(["" if operand is None else operand.name for operand in call.inputs])
        outputs = tuple([f"v{self._fresh + place}" for place in range(call.outputs)])
        self._fresh += call.outputs
        self.nodes.append(Node(call.op, names, outputs, call.attributes, call.domain))
        for name in names:
            if name:
                self.uses[name] += 1
        return tuple(
            [
                self._register(Operand(name, kind.dtype, kind.shape, fact), call.op)  # type: ignore[arg-type]
                for name, kind, fact in zip(outputs, types, facts, strict=True)
            ]
        )

    def call(self, op: str, *inputs: Operand | None, attributes: Mapping[str, Attribute] = NO_ATTRIBUTES) -> Operand:
        """Add a call with one output and return that."""
        return self.apply(Call(op, inputs, attributes))[0]

    def _infer(self, call: Call, spec: OpSpec) -> tuple[TensorType, ...]:
        """Return the output types: worked out where the spec says how, else by inference."""
        types = self._ask(call) if spec.shapes == "inferred" or call.domain else self._work_out(call, spec)
        for kind in types:
            if math.prod(kind.shape) > self._elements:  # type: ignore[arg-type]
                raise RejectedDraft(f"{call.op}: the output is too large")
        return types

    def _work_out(self, call: Call, spec: OpSpec) -> tuple[TensorType, ...]:
        """Return the output types of a call whose shape rule is known; its dtypes are inferred once and kept."""
        dtypes = tuple(["" if operand is None else operand.dtype for operand in call.inputs])
        key = (call.op, self.opset, call.outputs, dtypes, tuple(call.attributes.items()))
        found = _DTYPES.get(key)
        if found is None:
            types = self._ask(call)
            if len(_DTYPES) < _MOST_DTYPES:
                _DTYPES[key] = tuple(kind.dtype for kind in types)
            return types
        try:
            shape = promised_shape(spec.shapes, [operand.shape for operand in call.inputs if operand is not None])
        except ValueError as error:
            raise RejectedDraft(f"{call.op}: {error}") from None
        assert shape is not None, "a rule other than inference gives a shape"
        return tuple([tensor_type(dtype, shape) for dtype in found])

    def _ask(self, call: Call) -> tuple[TensorType, ...]:
        """Return the output types by onnx's inference. Raises RejectedDraft when they are not fully known."""
        if not self.support.may_admit(call, self.opset):  # cheaper to ask than inference
            raise RejectedDraft(f"{call.op} is not taken by the target")
        least = _least(call.op, self.opset, call.domain)
        if least is None or len(call.inputs) < least or None in call.inputs[:least]:
            raise RejectedDraft(f"{call.op} has no such form in opset {self.opset}")
        given: list[TensorType | None] = []
        known: dict[int, Tensor] = {}
        for place, operand in enumerate(call.inputs):
            given.append(operand and tensor_type(operand.dtype, operand.shape))
            if operand is not None and operand.value is not None and operand.value.size <= _STRUCTURAL_SIZE:
                known[place] = Tensor(operand.dtype, operand.value)
        try:
            types = infer_call(call.op, self.opset, call.attributes, given, call.outputs, known, call.domain)
        except ModelError as error:
            raise RejectedDraft(str(error)) from None
        for kind in types:
            if not isinstance(kind, TensorType) or kind.shape is None or kind.dtype not in _PLAIN:
                raise RejectedDraft(f"{call.op}: the output type is not known")
            for size in kind.shape:
                if not isinstance(size, int):
                    raise RejectedDraft(f"{call.op}: the output shape is not known")
        return types  # type: ignore[return-value]

    def _facts(self, call: Call, types: tuple[TensorType, ...], spec: OpSpec) -> tuple[Facts, ...]:
        if not spec.defined(call):
            raise RejectedDraft(f"{call.op} may be undefined on these operands")
        inputs = tuple([operand.facts for operand in call.inputs if operand is not None])
        exactness = spec.exactness_of(call)
        try:
            bounds = spec.bounds(call, types)
        except (OverflowError, ZeroDivisionError, ValueError):
            raise RejectedDraft(f"{call.op} could overflow") from None
        return tuple([settle(kind.dtype, bound, exactness, inputs) for kind, bound in zip(types, bounds, strict=True)])

    def _register(self, operand: Operand, producer: str) -> Operand:
        self.operands[operand.name] = operand
        pool = self.pool.get(operand.dtype)
        if pool is None:
            self.pool[operand.dtype] = [operand]
        else:
            pool.append(operand)
        self.producer[operand.name] = producer
        self.uses[operand.name] = 0
        return operand

    def _name(self, letter: str) -> str:
        name = f"{letter}{self._fresh}"
        self._fresh += 1
        return name


@lru_cache(1 << 14)
def tensor_type(dtype: str, shape: Shape) -> TensorType:
    """Return the type; equal ones are one object, because making one costs more than finding it."""
    return TensorType(dtype, shape)


@cache
def _least(op: str, opset: int, domain: str) -> int | None:
    """Return the least number of inputs, None when the opset has no such operator; the schema is slow to tell."""
    form = schema(op, opset, domain)
    return None if form is None else int(form.min_input)


def as_array(operand: Operand) -> Array:
    """Return the elements of a known operand."""
    assert operand.value is not None, f"{operand.name} is not known"
    return operand.value
