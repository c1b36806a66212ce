"""A plan to generalise a static graph, and the replay of that graph at other sizes.

A plan names the input sizes that become symbolic, and the elements of structural constants (targets of Reshape, ends of
Slice) that depend on them. A replay adds the graph's nodes to a new scope with concrete sizes, so that onnx's
inference, the guards against undefined behaviour and the interval facts are evaluated at these sizes.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Array, Tensor
from miscompile.graph.model import Node
from miscompile.ops.registry import having, specs
from miscompile.ops.spec import Call, Operand, Shape
from miscompile.ops.values import Range
from miscompile.producers.finish import Finisher
from miscompile.producers.scope import Scope

Sizes = Mapping[str, int]
"""Concrete sizes by symbol."""

Place = tuple[str, int]
"""An axis of a value."""

_STRUCTURAL_SIZE = 16
_MOST_ELEMENTS = 8192


@dataclass(frozen=True, slots=True)
class Linear:
    """An element of a structural operand: `factor` times the size of `symbol`, plus `offset`."""

    symbol: str
    factor: int
    offset: int

    def at(self, sizes: Sizes) -> int:
        """Return the element when symbols have these sizes."""
        return self.factor * sizes.get(self.symbol, 0) + self.offset


@dataclass(frozen=True, slots=True)
class SizePlan:
    """The symbolic parts of a graph: `ties` are axes of inputs, `adapted` elements of operands by position."""

    ties: Mapping[Place, str] = field(default_factory=dict)
    adapted: Mapping[str, Mapping[int, Linear]] = field(default_factory=dict)

    def tied(self, place: Place, symbol: str) -> "SizePlan":
        """Return the plan in which one more axis has the size of `symbol`."""
        return replace(self, ties={**self.ties, place: symbol})

    def following(self, name: str, position: int, element: Linear) -> "SizePlan":
        """Return the plan in which element `position` of operand `name` is `element`."""
        elements = {**self.adapted.get(name, {}), position: element}
        return replace(self, adapted={**self.adapted, name: elements})

    def symbols(self) -> list[str]:
        """Return the symbols in use, in order."""
        return sorted(set(self.ties.values()))


class ReplayError(RejectedDraft):
    """The graph is not valid at these sizes: `place` is the number of the invalid node, `known` the values before it.

    `place` is the number of nodes when all were valid, but values differ in rank or broadcasting from the generic
    sizes.
    """

    def __init__(self, message: str, place: int, known: Mapping[str, Operand]) -> None:
        super().__init__(message)
        self.place = place
        self.known = known


class Base:
    """A finished static graph, its nodes without Constant nodes, and the values that can become symbolic."""

    def __init__(self, scope: Scope, outputs: list[str]) -> None:
        self.scope = scope
        self.outputs = outputs
        self.finisher = Finisher(scope)
        self.nodes: list[Node] = [node for node in self.finisher.nodes if node.op != "Constant"]
        self.openable = self.finisher.openable(name for name in scope.drawn if scope.uses[name])
        used = [name for name in [*scope.inputs, *sorted(self.openable)] if scope.uses[name]]
        self.sources: dict[str, Shape] = {name: scope.operands[name].shape for name in used}
        self.structural = {name: operand for name, operand in scope.operands.items() if self._is_structural(operand)}

    def _is_structural(self, operand: Operand) -> bool:
        value, name = operand.value, operand.name
        if value is None or name in self.scope.drawn or not self.scope.uses[name]:
            return False
        return operand.dtype in ("int64", "int32") and value.ndim <= 1 and 0 < value.size <= _STRUCTURAL_SIZE

    def span(self, name: str) -> Range:
        """Return the range that input or opened constant `name` is drawn from."""
        known = self.scope.inputs.get(name)
        facts = self.scope.operands[name].facts
        return known if known is not None else Range(facts.lo, facts.hi, facts.integral)

    def value(self, name: str, plan: SizePlan, sizes: Sizes) -> Array:
        """Return the elements of known operand `name` at these sizes."""
        value = self.scope.operands[name].value
        assert value is not None
        elements = plan.adapted.get(name)
        if elements is None:
            return value
        adapted = value.copy()
        flat = adapted.reshape(-1)
        for position, element in elements.items():
            flat[position] = element.at(sizes)
        return flat.reshape(value.shape)

    def shape(self, name: str, plan: SizePlan, sizes: Sizes) -> Shape:
        """Return the shape of source `name` at these sizes."""
        return tuple(
            sizes[plan.ties[name, axis]] if (name, axis) in plan.ties else size
            for axis, size in enumerate(self.scope.operands[name].shape)
        )

    def opened(self, plan: SizePlan) -> frozenset[str]:
        """Return the drawn constants that have a symbolic size, and so must be inputs."""
        return frozenset(name for name, _ in plan.ties if name in self.openable)

    def replay(self, plan: SizePlan, sizes: Sizes) -> dict[str, Operand]:
        """Return an operand with shape and facts for every value of the graph at these sizes.

        Raises ReplayError when a node is not valid, or not defined for all elements, at these sizes.
        """
        base, opened = self.scope, self.opened(plan)
        scope = Scope(random.Random(0), base.opset, base.limits, base.style, base.support, _MOST_ELEMENTS)
        known: dict[str, Operand] = {}
        for name, operand in base.operands.items():
            if name in base.inputs or name in opened:
                known[name] = scope.new_input(operand.dtype, self.shape(name, plan, sizes), self.span(name))
            elif name in base.pinned or (not base.producer[name] or base.producer[name] == "Constant"):
                value = Tensor(operand.dtype, self.value(name, plan, sizes))
                known[name] = scope.new_constant(value)
        for place, node in enumerate(self.nodes):
            try:
                results = scope.apply(_call(node, known))
            except RejectedDraft as error:
                raise ReplayError(str(error), place, known) from None
            known.update(zip(node.outputs, results, strict=True))
        return known


def require_same_kind(base: Base, generic: Mapping[str, Operand], known: Mapping[str, Operand]) -> None:
    """Raise ReplayError unless values have the ranks, and operands broadcast, as at `generic` sizes.

    A symbolic size that equals one at run time would broadcast against a larger size. ONNX allows that, but compilers
    assume that a symbolic size does not broadcast.
    """
    for place, node in enumerate(base.nodes):
        for name in node.outputs:
            if known[name].rank != generic[name].rank:
                raise ReplayError(f"{node.op}: another rank than at other sizes", place, known)
        if _samples_anew(base, node, known):
            raise ReplayError(f"{node.op}: samples an image of another size", place, known)
        if any(_stretches(*pair) for pair in _aligned(node, generic, known)):
            raise ReplayError(f"{node.op}: stretches what has a symbolic size", place, known)


def _samples_anew(base: Base, node: Node, known: Mapping[str, Operand]) -> bool:
    """Tell whether `node` samples an image of other sizes than those for which its coordinates were drawn.

    Results are unspecified for coordinates halfway between two elements; samplers exclude those for the drawn sizes
    only.
    """
    if node.op not in having("image-positions"):
        return False
    name = node.inputs[0]
    return known[name].shape[2:] != base.scope.operands[name].shape[2:]


Aligned = tuple[int, int, int, int]
"""Two sizes aligned by broadcasting, then the same two at generic sizes."""


def _stretches(left: int, right: int, generic_left: int, generic_right: int) -> bool:
    if left == right:
        return False
    return (left == 1 and generic_left != 1) or (right == 1 and generic_right != 1)


def _aligned(node: Node, generic: Mapping[str, Operand], known: Mapping[str, Operand]) -> Iterator[Aligned]:
    """Yield the sizes that `node` broadcasts against each other, aligned from the right."""
    spec = specs()[node.op]
    shapes = list(
        zip(spec.broadcast_shapes(_call(node, known)), spec.broadcast_shapes(_call(node, generic)), strict=True)
    )
    for place, (left, wide) in enumerate(shapes):
        for right, wider in shapes[place + 1 :]:
            yield from zip(left[::-1], right[::-1], wide[::-1], wider[::-1], strict=False)


def _call(node: Node, operands: Mapping[str, Operand]) -> Call:
    inputs = tuple(operands[name] if name else None for name in node.inputs)
    return Call(node.op, inputs, node.attributes, len(node.outputs), node.domain)
