"""The graph under construction: values with their facts, nodes, inputs and constants, and rollback.

Nodes are typed by onnx's inference when they are added, so the graph is always valid.
"""

import math
import random
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import NamedTuple, NoReturn

from miscompile.base.dtypes import PLAIN, is_float
from miscompile.base.errors import ModelError, RejectedDraft
from miscompile.core.tensor import Tensor
from miscompile.graph.edges import reads
from miscompile.graph.infer import infer_call
from miscompile.graph.model import NO_ATTRIBUTES, Attribute, Node, TensorType
from miscompile.graph.structural import STRUCTURAL_SIZE
from miscompile.ops.facts import Facts, measure, settle
from miscompile.ops.registry import schema, specs, written
from miscompile.ops.shapes import promised_shapes
from miscompile.ops.spec import Call, Operand, OperatorLimits, OpSpec, Shape, always
from miscompile.ops.support import CallClass, Support, call_class_key
from miscompile.ops.values import Range, Style, draw

_PLAIN = frozenset(PLAIN)
_MEASURED_SIZE = 16
"""The most elements of a random constant whose range is measured; larger ones nearly reach the ends of their range."""

ROOM = 8192
"""The most elements of a value, unless a scope is made for larger ones."""

_MOST_CLASSES = 1 << 16
"""The most call classes cached in a support table."""

_UNBOUNDED = Facts(-math.inf, math.inf)

_UNMET = CallClass((), mixed=False, barred=frozenset())


class CallRefused(RejectedDraft):
    """The target supports no call of this operator with these dtypes and modes, in any shapes and with any elements."""


class Mark(NamedTuple):
    """A state of the scope for `rollback`."""

    names: int
    nodes: int
    fresh: int


class Serialised(NamedTuple):
    """Bytes of nodes, by their identity, and of constants, by name, that several scopes begin with."""

    nodes: dict[int, bytes]
    constants: dict[str, bytes]


class Scope:
    """Values and nodes of one case. Names are numbered in order, so a rollback removes the newest ones.

    The first `taken` nodes, and the constants before them, are those of another scope: see `take_over`.
    """

    def __init__(
        self,
        rng: random.Random,
        opset: int,
        limits: OperatorLimits,
        style: Style,
        support: Support,
        elements: int = ROOM,
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
        self.cycled: dict[str, tuple[Tensor, ...]] = {}
        self.initializers: dict[str, Tensor] = {}
        self.drawn: set[str] = set()
        self.serialised = Serialised({}, {})
        self.taken = 0
        self._elements = elements
        self._fresh = 0

    def mark(self) -> Mark:
        """Return the current state for `rollback`."""
        return Mark(len(self.operands), len(self.nodes), self._fresh)

    def rollback(self, mark: Mark) -> None:
        """Remove everything added since `mark`."""
        while (
            len(self.operands) > mark.names
        ):  # dictionaries keep the order of insertion, so the newest entry is the last
            name, operand = self.operands.popitem()
            self.pool[operand.dtype].pop()
            del self.producer[name], self.uses[name]
            for table in (self.inputs, self.pinned, self.cycled, self.initializers):
                table.pop(name, None)
            self.drawn.discard(name)
        while len(self.nodes) > mark.nodes:
            for name in reads(self.nodes.pop()):
                if name in self.uses:
                    self.uses[name] -= 1
        self._fresh = mark.fresh

    def take_over(self, other: "Scope", mark: Mark) -> None:
        """Fill this scope, which must be empty, with what `other` held at `mark`, under the same names.

        At that time `other` had all of its inputs and constants.
        """
        self.operands = dict(islice(other.operands.items(), mark.names))
        self.producer = dict(islice(other.producer.items(), mark.names))
        self.uses = dict.fromkeys(self.operands, 0)
        for operand in self.operands.values():
            self.pool.setdefault(operand.dtype, []).append(operand)
        self.nodes = other.nodes[: mark.nodes]
        uses = self.uses
        for node in self.nodes:
            for name in reads(node) if node.attributes else node.inputs:
                if name in uses:
                    uses[name] += 1
        self.serialised, self.taken = other.serialised, mark.nodes
        self.inputs, self.pinned, self.cycled = dict(other.inputs), dict(other.pinned), dict(other.cycled)
        self.initializers, self.drawn = dict(other.initializers), set(other.drawn)
        self._fresh = mark.fresh

    def new_input(self, dtype: str, shape: Shape, span: Range) -> Operand:
        """Add a graph input whose elements will be drawn from `span`. Raises RejectedDraft for a negative size."""
        if shape and min(shape) < 0:
            raise RejectedDraft(f"the value wanted here cannot have the shape {shape}")
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
        """Add a graph input with `value` in every feed, because output types depend on its elements."""
        name = self._name("p")
        self.pinned[name] = value
        return self._register(Operand(name, value.dtype, value.shape, measure(value), value.array), "")

    def new_cycled(self, values: tuple[Tensor, ...], facts: Facts) -> Operand:
        """Add a graph input with `values` in turn, one per feed; `facts` hold for all of them."""
        name = self._name("s")
        self.cycled[name] = values
        return self._register(Operand(name, values[0].dtype, values[0].shape, facts), "")

    def drawn_constant(self, dtype: str, shape: Shape, span: Range) -> Operand:
        """Add an initialiser with elements drawn from `span`."""
        value = Tensor(dtype, draw(self.rng, dtype, shape, span))
        name = self._name("c")
        self.initializers[name] = value
        self.drawn.add(name)
        facts = measure(value) if 0 < value.array.size <= _MEASURED_SIZE else span.facts()
        return self._register(Operand(name, dtype, shape, facts, value.array), "")

    def given_constant(self, value: Tensor, facts: Facts, *, free: bool = True) -> Operand:
        """Add an initialiser with given elements and facts. `free`: an `InputSetting` may make it an input."""
        name = self._name("c")
        self.initializers[name] = value
        if free:
            self.drawn.add(name)
        return self._register(Operand(name, value.dtype, value.shape, facts, value.array), "")

    def apply(self, call: Call, *, drawn: bool = False, loose: bool = False) -> tuple[Operand, ...]:
        """Add a call and return its outputs. `drawn`: the operator's sampler built the call, so it is well-formed.

        `loose`: a result that may overflow according to its interval has no facts; otherwise the call is rejected.

        Raises RejectedDraft when the call is invalid, undefined for some elements, too large, able to overflow, or not
        supported by the target; the scope is then unchanged.
        """
        spec = specs().get(call.op)
        if spec is None:
            raise RejectedDraft(f"{call.op} has no spec")
        types = self._types(call, spec)
        for kind in types:
            if math.prod(kind.shape) > self._elements:  # type: ignore[arg-type]
                raise RejectedDraft(f"{call.op}: the output is too large")
        try:
            facts = self._facts(call, types, spec, written()[call.op].defined if drawn else spec.defined)
        except RejectedDraft:
            if not loose or any(not is_float(kind.dtype) for kind in types) or not spec.defined(call):
                raise
            facts = tuple([_UNBOUNDED for _ in types])
        return self._add(call, types, facts)

    def learn(self, operand: Operand, elements: Tensor) -> Operand:
        """Record the computed elements of the newest value, an integer one; return the updated operand."""
        known = operand._replace(facts=measure(elements), value=elements.array)
        self.operands[operand.name] = self.pool[operand.dtype][-1] = known
        return known

    def call(
        self,
        op: str,
        *inputs: Operand | None,
        attributes: Mapping[str, Attribute] = NO_ATTRIBUTES,
        drawn: bool = False,
    ) -> Operand:
        """Add a call with one output and return that. `drawn`: the caller knows that it is well-formed."""
        return self.apply(Call(op, inputs, attributes), drawn=drawn)[0]

    def add_block(
        self,
        op: str,
        inputs: Sequence[Operand | None],
        attributes: Mapping[str, Attribute],
        results: Sequence[tuple[TensorType, Facts]],
    ) -> tuple[Operand, ...]:
        """Add a node with bodies, whose results have these types and facts, and return the results.

        The method checks neither types nor facts; the caller is responsible for them. Types are static.
        """
        call = Call(op, tuple(inputs), attributes, len(results))
        made = self._add(call, tuple([kind for kind, _ in results]), tuple([facts for _, facts in results]))
        given = len([operand for operand in inputs if operand is not None])
        for name in list(reads(self.nodes[-1]))[given:]:
            self.uses[name] += 1
        return made

    def add_known(
        self,
        op: str,
        inputs: Sequence[Operand | None],
        attributes: Mapping[str, Attribute],
        results: Sequence[Operand],
    ) -> tuple[Operand, ...]:
        """Add a node whose results are known but for their names, and return the results.

        The method checks nothing: the caller knows the results from an equal call on equal operands.
        """
        uses = self.uses
        names = tuple(["" if operand is None else operand.name for operand in inputs])
        for name in names:
            if name:
                uses[name] += 1
        made = []
        for dtype, shape, facts, value in [result[1:] for result in results]:
            made.append(self._register(Operand(f"v{self._fresh}", dtype, shape, facts, value), op))
            self._fresh += 1
        self.nodes.append(Node(op, names, tuple([result.name for result in made]), attributes))
        return tuple(made)

    def add_inner(self, op: str, inputs: Sequence[str], attributes: Mapping[str, Attribute]) -> str:
        """Add a node whose single result is not a tensor (a sequence, an optional), and return the result's name.

        The result has no entry among the operands, so the caller must add the nodes that read it.
        """
        name = f"v{self._fresh}"
        self._fresh += 1
        self.nodes.append(Node(op, tuple(inputs), (name,), attributes))
        self._count_reads()
        return name

    def add_outer(
        self, op: str, inputs: Sequence[str], attributes: Mapping[str, Attribute], kind: TensorType, facts: Facts
    ) -> Operand:
        """Add a node that reads a value of `add_inner` and returns a tensor of a static type, unchecked."""
        if math.prod(kind.shape or ()) > self._elements:  # type: ignore[arg-type]
            raise RejectedDraft(f"{op}: the output is too large")
        result = self._register(Operand(f"v{self._fresh}", kind.dtype, kind.shape, facts), op)  # type: ignore[arg-type]
        self._fresh += 1
        self.nodes.append(Node(op, tuple(inputs), (result.name,), attributes))
        self._count_reads()
        return result

    def _count_reads(self) -> None:
        """Count the tensors that the newest node reads, in its bodies too."""
        for name in reads(self.nodes[-1]):
            if name in self.uses:
                self.uses[name] += 1

    def _add(self, call: Call, types: tuple[TensorType, ...], facts: tuple[Facts, ...]) -> tuple[Operand, ...]:
        """Add the node of a call, and register its outputs."""
        op, uses = call.op, self.uses
        names = []
        for operand in call.inputs:
            if operand is None:
                names.append("")
            else:
                names.append(operand.name)
                uses[operand.name] += 1
        results = []
        for kind, fact in zip(types, facts, strict=True):
            result = Operand(f"v{self._fresh}", kind.dtype, kind.shape, fact)  # type: ignore[arg-type]
            self._fresh += 1
            results.append(self._register(result, op))
        outputs = tuple([result.name for result in results])
        self.nodes.append(Node(op, tuple(names), outputs, call.attributes, call.domain))
        return tuple(results)

    def _types(self, call: Call, spec: OpSpec) -> tuple[TensorType, ...]:
        """Return the output types of a call that the target supports: by the spec's shape rule, else inferred.

        The dtypes of a class of calls and the target's support for it are looked up once.
        """
        if spec.shapes == "inferred" or call.domain:
            types = self._ask(call)
            return types if self.support.admits(call, types, self.opset) else _refuse(call)
        key = call_class_key(call, self.opset)
        known = self.support.classes.get(key, _UNMET)
        if known is _UNMET:
            return self._meet(call, key)
        if known is None:
            raise CallRefused(f"{call.op} is not supported by the target")
        try:
            shapes = promised_shapes(spec, call)
        except ValueError as error:
            raise RejectedDraft(f"{call.op}: {error}") from None
        if shapes is None:
            types = self._ask(call)
        else:
            types = tuple([tensor_type(dtype, shape) for dtype, shape in zip(known.dtypes, shapes, strict=True)])
        if (known.mixed or known.barred) and not self.support.suits(known, call, types, self.opset):
            _refuse(call)
        return types

    def _meet(self, call: Call, key: Hashable) -> tuple[TensorType, ...]:
        """Return the output types of a call whose class is new, and cache the class."""
        support = self.support
        classes = support.classes if len(support.classes) < _MOST_CLASSES else {}
        if not support.may_admit(call, self.opset):
            classes[key] = None
            raise CallRefused(f"{call.op} is not supported by the target")
        types = self._ask(call)
        known = classes[key] = support.call_class_of(call, types, self.opset)
        if known is None:
            raise CallRefused(f"{call.op} is not supported by the target")
        return types if support.suits(known, call, types, self.opset) else _refuse(call)

    def _ask(self, call: Call) -> tuple[TensorType, ...]:
        """Return the output types by onnx's inference. Raises RejectedDraft when they are not fully known."""
        if not self.support.may_admit(call, self.opset):  # cheaper than inference
            _refuse(call)
        least = _least(call.op, self.opset, call.domain)
        if least is None or len(call.inputs) < least or None in call.inputs[:least]:
            raise RejectedDraft(f"{call.op} has no such form in opset {self.opset}")
        given: list[TensorType | None] = []
        known: dict[int, Tensor] = {}
        for place, operand in enumerate(call.inputs):
            given.append(operand and tensor_type(operand.dtype, operand.shape))
            if operand is not None and operand.value is not None and operand.value.size <= STRUCTURAL_SIZE:
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

    def _facts(
        self, call: Call, types: tuple[TensorType, ...], spec: OpSpec, defined: Callable[[Call], bool]
    ) -> tuple[Facts, ...]:
        if defined is not always and not defined(call):
            raise RejectedDraft(f"{call.op} may be undefined on these operands")
        inputs = tuple([operand.facts for operand in call.inputs if operand is not None])
        exactness = spec.exactness if spec.exact_when is always else spec.exactness_of(call)
        try:
            bounds = spec.bounds(call, types)
            return tuple([settle(kind.dtype, one, exactness, inputs) for kind, one in zip(types, bounds, strict=True)])
        except (OverflowError, ZeroDivisionError, ValueError):
            raise RejectedDraft(f"{call.op} could overflow") from None

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


def _refuse(call: Call) -> NoReturn:
    raise RejectedDraft(f"{call.op} is not supported by the target")


@lru_cache(1 << 14)
def tensor_type(dtype: str, shape: Shape) -> TensorType:
    """Return the type; equal types are one object, because a lookup is faster than construction."""
    return TensorType(dtype, shape)


@cache
def _least(op: str, opset: int, domain: str) -> int | None:
    """Return the least number of inputs, None when the opset has no such operator; cached, because reading the
    schema is slow."""
    found = schema(op, opset, domain)
    return None if found is None else int(found.min_input)
