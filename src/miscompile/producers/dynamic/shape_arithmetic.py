"""Shape arithmetic: the nodes that compute a structural operand from the shapes of other values.

Exporters write such chains (Shape, Gather, Unsqueeze, Concat, Reshape) wherever a size is not known. Compilers fold and
match them, and have bugs there. Sources: the operator pages of Shape, Gather, Slice and Concat.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.core.tensor import Tensor
from miscompile.graph.attributes import attributes
from miscompile.graph.model import Node
from miscompile.graph.rename import rename_nodes
from miscompile.ops.spec import Call, Operand
from miscompile.ops.values import Range
from miscompile.producers.dynamic.plan import Base, Linear, Place
from miscompile.producers.scope import Scope

_SHAPE_SLICES = 15
"""First opset whose Shape has `start` and `end`."""


@dataclass(frozen=True, slots=True)
class ShapeChain:
    """Nodes and constants that compute one operand, and its name."""

    nodes: tuple[Node, ...]
    constants: Mapping[str, Tensor]
    result: str


class Chains:
    """Writes chains for one graph; names in them are new."""

    def __init__(self, base: Base, rng: random.Random) -> None:
        self._base, self._rng = base, rng
        self._fresh = 0

    def write(
        self, name: str, elements: Mapping[int, Linear], axes: Mapping[str, Sequence[Place]], whole: str | None
    ) -> ShapeChain:
        """Return the chain for operand `name`, whose other elements stay as they are.

        `axes` are the axes known to have the size of each symbol; `whole` is a value whose shape is the operand. Raises
        RejectedDraft when the target does not support the operators of the chain.
        """
        base, rng = self._base, self._rng
        operand = base.scope.operands[name]
        assert operand.value is not None
        scope = Scope(rng, base.scope.opset, base.scope.limits, base.scope.style, base.scope.support)
        entered: dict[str, str] = {}
        if whole is not None:
            result = scope.call("Shape", self._enter(scope, entered, whole))
        else:
            pieces = self._pieces(scope, entered, operand.value.reshape(-1).tolist(), elements, axes)
            result = self._joined(scope, pieces, operand)
        if operand.dtype != "int64":
            result = scope.call("Cast", result, attributes=attributes({"to": DTYPES[operand.dtype].code}))
        return self._renamed(scope, entered, result)

    def _pieces(
        self,
        scope: Scope,
        entered: dict[str, str],
        values: list[int],
        elements: Mapping[int, Linear],
        axes: Mapping[str, Sequence[Place]],
    ) -> list[Operand]:
        """Return the vectors whose concatenation is the operand; neighbouring constants form one vector."""
        pieces: list[Operand] = []
        fixed: list[int] = []
        for position, value in enumerate(values):
            element = elements.get(position)
            if element is None or not element.symbol:
                fixed.append(value if element is None else element.offset)
                continue
            if fixed:
                pieces.append(self._constant(scope, fixed))
                fixed = []
            source = self._rng.choice(axes[element.symbol])
            pieces.append(self._scaled(scope, self._size(scope, entered, source), element))
        if fixed:
            pieces.append(self._constant(scope, fixed))
        return pieces

    def _size(self, scope: Scope, entered: dict[str, str], source: Place) -> Operand:
        """Return the size of an axis as a vector of one element."""
        rng, (name, axis) = self._rng, source
        value = self._enter(scope, entered, name)
        written = axis - value.rank if rng.random() < 0.3 else axis
        style = rng.choice(("gather", "scalar", "slice", "attribute"))
        if style == "attribute" and scope.opset >= _SHAPE_SLICES:
            ends = {"start": written, "end": None if axis == value.rank - 1 else axis + 1}
            return scope.call("Shape", value, attributes=attributes(ends))
        shape = scope.call("Shape", value)
        if style == "slice":
            return scope.call("Slice", shape, self._constant(scope, [axis]), self._constant(scope, [axis + 1]))
        if style == "scalar":
            size = scope.call("Gather", shape, scope.new_constant(Tensor("int64", np.array(written))))
            return scope.call("Unsqueeze", size, self._constant(scope, [0]))
        return scope.call("Gather", shape, self._constant(scope, [written]))

    def _scaled(self, scope: Scope, size: Operand, element: Linear) -> Operand:
        if element.factor != 1:
            size = scope.call("Mul", size, self._constant(scope, [element.factor]))
        if element.offset:
            size = scope.call("Add", size, self._constant(scope, [element.offset]))
        return size

    def _joined(self, scope: Scope, pieces: list[Operand], like: Operand) -> Operand:
        if not like.rank:
            return scope.call("Squeeze", pieces[0], self._constant(scope, [0]))
        if len(pieces) == 1:
            return pieces[0]
        return scope.apply(Call("Concat", tuple(pieces), attributes({"axis": 0})))[0]

    def _enter(self, scope: Scope, entered: dict[str, str], name: str) -> Operand:
        """Return the operand that represents value `name` of the graph in the chain's own scope."""
        for inner, outer in entered.items():
            if outer == name:
                return scope.operands[inner]
        known = self._base.scope.operands[name]
        operand = scope.new_input(known.dtype, known.shape, Range(0, 1, integral=True))
        entered[operand.name] = name
        return operand

    def _constant(self, scope: Scope, values: Sequence[int]) -> Operand:
        return scope.new_constant(Tensor("int64", np.array(values, np.int64)))

    def _renamed(self, scope: Scope, entered: Mapping[str, str], result: Operand) -> ShapeChain:
        names = dict(entered)
        for name in scope.operands:
            if name not in names:
                names[name] = f"s{self._fresh}"
                self._fresh += 1
        nodes = rename_nodes(scope.nodes, names)
        constants = {names[name]: value for name, value in scope.initializers.items()}
        return ShapeChain(nodes, constants, names[result.name])
