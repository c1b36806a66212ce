"""A fragment under other sizes, types and attributes: evaluation of types and rules without running it.

Nothing here is specific to an operator. onnx's type inference and the rules of the operator's page decide whether an
operator accepts its operands, so that every operator with a spec can be lifted.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from miscompile.base.dtypes import PLAIN, is_float
from miscompile.base.errors import ModelError
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.infer import infer_call
from miscompile.graph.model import Attribute, Node, TensorType
from miscompile.ops.facts import Facts, measure
from miscompile.ops.registry import schema, specs, well_formed
from miscompile.ops.seed import Seed
from miscompile.ops.spec import Call, Operand

SHOWN = 64
"""Greatest number of elements of constants passed to inference; larger ones never determine a shape."""

_ANY = Facts(-3, 3)
_KINDS = frozenset({"int", "float", "string", "ints", "floats", "strings", "tensor"})


@dataclass(frozen=True, slots=True, eq=False)
class KnownValue:
    """The type of a hole, a constant or a result, with its elements where they matter."""

    type: TensorType
    value: Tensor | None = None
    facts: Facts = _ANY

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions, all of which are fixed."""
        return self.type.shape  # type: ignore[return-value]


def kept(value: Tensor) -> KnownValue:
    """Return a constant with its elements."""
    return KnownValue(TensorType(value.dtype, value.shape), value, measure(value))


@dataclass(frozen=True, slots=True, eq=False)
class FragmentSetting:
    """Inputs of a fragment: `given` holes and constants by name, and the attributes of every node."""

    given: Mapping[str, KnownValue]
    attributes: tuple[Mapping[str, Attribute], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Fragment:
    """The parts of a seed. Pinned inputs are constants; `holes` are the other inputs that are read, in order.

    `sure` are the nodes that are known to be defined on all elements, which must stay so in other settings. `filled`
    are the holes that become constants, with their ranges.
    """

    nodes: tuple[Node, ...]
    opset: int
    holes: Mapping[str, TensorType]
    constants: Mapping[str, Tensor]
    sure: frozenset[int] = frozenset()
    filled: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def run(
        self, setting: FragmentSetting, base: Mapping[str, KnownValue] | None = None
    ) -> dict[str, KnownValue] | None:
        """Return type and elements of every value; None when an operator rejects its operands.

        `base` is the result for another setting. Values whose inputs are the same objects are taken from it.
        """
        known = dict(setting.given)
        for place, node in enumerate(self.nodes):
            attributes = setting.attributes[place]
            if (
                base is not None
                and attributes is node.attributes
                and all(not name or known[name] is base.get(name) for name in node.inputs)
            ):
                known.update((name, base[name]) for name in node.outputs if name)
                continue
            types = self._types(place, attributes, known)
            if types is None:
                return None
            for name, kind in zip(node.outputs, types, strict=True):
                if name:
                    same = base is not None and base[name].type == kind
                    known[name] = base[name] if base is not None and same else KnownValue(kind)
        return known

    def with_sure(self, known: Mapping[str, KnownValue]) -> "Fragment":
        """Return the fragment with its `sure` nodes recorded, given the facts of all values."""
        return replace(self, sure=frozenset(place for place in range(len(self.nodes)) if self.is_sure(place, known)))

    def is_sure(self, place: int, known: Mapping[str, KnownValue]) -> bool:
        """Tell whether a node is known to be defined on all elements."""
        node = self.nodes[place]
        return _keeps_rules(self._call(node, node.attributes, known), sure=True)

    def _types(
        self, place: int, attributes: Mapping[str, Attribute], known: Mapping[str, KnownValue]
    ) -> tuple[TensorType, ...] | None:
        node = self.nodes[place]
        shown = {place: known[name].value for place, name in enumerate(node.inputs) if name}
        elements = {place: value for place, value in shown.items() if value is not None and value.array.size <= SHOWN}
        types = [known[name].type if name else None for name in node.inputs]
        try:
            found = infer_call(node.op, self.opset, attributes, types, len(node.outputs), elements)
        except ModelError:
            return None
        if not all(map(is_plain, found)) or not _keeps_rules(self._call(node, attributes, known), place in self.sure):
            return None
        return found  # type: ignore[return-value]

    def _call(self, node: Node, attributes: Mapping[str, Attribute], known: Mapping[str, KnownValue]) -> Call:
        operands = tuple([self._operand(name, known[name]) if name else None for name in node.inputs])
        return Call(node.op, operands, attributes, len(node.outputs))

    def _operand(self, name: str, known: KnownValue) -> Operand:
        if known.value is None and name in self.filled:
            known = spread(known.type, self.filled[name])
        array = None if known.value is None else known.value.array
        return Operand(name, known.type.dtype, known.shape, known.facts, array)


def spread(kind: TensorType, span: tuple[float, float]) -> KnownValue:
    """Return a constant of a type, with elements distributed over a range."""
    shape: tuple[int, ...] = kind.shape  # type: ignore[assignment]
    count = math.prod(shape)
    numbers = np.linspace(*span, count) if count > 1 else np.full(count, span[1])
    numbers = numbers if is_float(kind.dtype) else np.floor(numbers).astype(np.int64)
    return kept(tensor(numbers.reshape(shape), kind.dtype))


def _keeps_rules(call: Call, sure: bool) -> bool:
    """Tell whether a call keeps its operator's page, and with `sure`, whether it is defined on all elements.

    An exception in a rule counts as a violation, because the rules do not expect every rank that is tried here.
    """
    try:
        return specs()[call.op].defined(call) if sure else well_formed(call)
    except (ArithmeticError, AssertionError, IndexError, ValueError):
        return False


def fragment_of(seed: Seed) -> Fragment | None:
    """Return the parts of a seed; None for one with bodies, functions, or values other than tensors of a plain type."""
    graph = seed.graph
    if graph.sparse_initializers or not graph.nodes:
        return None
    nodes = tuple(map(_trimmed, graph.nodes))
    read = dict.fromkeys(name for node in nodes for name in node.inputs if name)
    constants = {name: value for name, value in graph.initializers.items() if name in read}
    holes: dict[str, TensorType] = {}
    for info in graph.inputs:
        if info.name in seed.pinned and info.name in read:
            constants[info.name] = seed.pinned[info.name]
        elif info.name in read and info.name not in constants:
            if not is_plain(info.type):
                return None
            holes[info.name] = info.type  # type: ignore[assignment]
    plain = all(value.dtype in PLAIN for value in constants.values())
    if not holes or not plain or not all(_fits(node, seed.opset) for node in nodes):
        return None
    return Fragment(nodes, seed.opset, holes, constants)


def _trimmed(node: Node) -> Node:
    """Return the node without omitted operands and results at the end."""
    inputs, outputs = list(node.inputs), list(node.outputs)
    for names in (inputs, outputs):
        while names and not names[-1]:
            names.pop()
    return Node(node.op, tuple(inputs), tuple(outputs), node.attributes, node.domain)


def _fits(node: Node, opset: int) -> bool:
    """Tell whether an operator has a spec, and a line of a motif can express the node."""
    known = None if node.domain not in ("", "ai.onnx") else schema(node.op, opset)
    if known is None or node.op not in specs() or not node.outputs:
        return False
    if len(node.inputs) < known.min_input or "" in node.inputs[: known.min_input]:
        return False
    return all(
        given.kind in _KINDS
        and (given.kind != "tensor" or (given.value.dtype in PLAIN and given.value.array.size <= SHOWN))
        for given in node.attributes.values()
    )


def is_plain(kind: object) -> bool:
    """Tell whether a type is that of a plain tensor of fixed sizes."""
    if not isinstance(kind, TensorType) or kind.shape is None or kind.dtype not in PLAIN:
        return False
    return all(isinstance(size, int) and size >= 0 for size in kind.shape)
