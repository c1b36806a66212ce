"""The kinds of bodies for `wrap`, each constructed so that it runs once and gives bit-identical results."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.core.tensor import Array, Tensor, numpy_name, tensor
from miscompile.graph.attributes import attributes
from miscompile.graph.bodies import is_static
from miscompile.graph.constant_nodes import constant
from miscompile.graph.edges import reads
from miscompile.graph.model import Attribute, Graph, Node, TensorType, ValueInfo, ValueType
from miscompile.graph.rename import NameSupply, refresh
from miscompile.transforms.exact.schemas import gives

WrapKind = Literal["any", "if", "if_computed", "loop", "loop_computed", "scan"]
HOWS: tuple[WrapKind, ...] = ("if", "if_computed", "loop", "loop_computed", "scan")

PLAIN = frozenset({
    "float16", "float32", "float64", "bfloat16", "bool",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
})  # fmt: skip
"""Numeric element types of whole bytes, because some targets lack Squeeze and the like for others."""

_FILLED = PLAIN - {"bfloat16"}
"""Element types for which most compilers have Expand kernels."""

_MEASURED = 9
"""Opset from which sizes can be compared, and NonZero and Scan (without a batch axis) exist."""

_AXES_AS_OPERAND = 13

_TURNS, _GO = TensorType("int64", ()), TensorType("bool", ())
_BOOL, _INT64 = DTYPES["bool"].code, DTYPES["int64"].code


@dataclass(frozen=True, slots=True)
class WrappedNodes:
    """Nodes to wrap, with their outputs, the constants that move with them, and the types of operands and results.

    `barred` values are always captured, because a value that becomes an input of a body is no constant any more.
    """

    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, Tensor]
    types: Mapping[str, ValueType]
    opset: int
    barred: frozenset[str]

    def type_of(self, name: str) -> TensorType:
        """Return the type of one of the outputs."""
        kind = self.types[name]
        assert isinstance(kind, TensorType)
        return kind

    def operands(self) -> dict[str, TensorType]:
        """Return the dense tensors of plain numbers that the nodes read from outside and that are not barred."""
        made = {name for node in self.nodes for name in node.outputs}
        found: dict[str, TensorType] = {}
        for node in self.nodes:
            for name in reads(node):
                kind = self.types.get(name)
                outer = name not in made and name not in self.constants and name not in self.barred
                if outer and isinstance(kind, TensorType) and kind.dtype in PLAIN:
                    found[name] = kind
        return found


def wrapped(piece: WrappedNodes, how: WrapKind, rng: random.Random, names: NameSupply) -> tuple[Node, ...]:
    """Return nodes that compute the outputs of `piece` with its nodes in a body.

    `any` draws the kind; a piece without operands falls back to a kind that needs none.
    """
    kind = rng.choice(HOWS) if how == "any" else how
    writer = _Writer(piece, rng, names)
    if piece.opset < _MEASURED or not writer.operands:
        kind = "loop" if kind.startswith("loop") else "if"
    if kind == "scan":
        return writer.scan()
    computed = kind.endswith("computed")
    return writer.branches(computed=computed) if kind.startswith("if") else writer.loop(computed=computed)


class _Writer:
    """Makes the nodes for one piece."""

    def __init__(self, piece: WrappedNodes, rng: random.Random, names: NameSupply) -> None:
        self.operands = piece.operands()
        self._piece, self._rng, self._names = piece, rng, names
        self._nodes: list[Node] = []

    def branches(self, *, computed: bool) -> tuple[Node, ...]:
        """Return an If whose condition is true, with other values of the same types in its other branch."""
        condition = self._true() if computed else self._constant("always", np.array(True))
        nodes, results, constants = self._copy({})
        then = Graph("then", (), self._infos(results), nodes, constants)
        given = {"then_branch": Attribute("graph", then), "else_branch": Attribute("graph", self._otherwise())}
        return (*self._nodes, Node("If", (condition,), self._piece.outputs, given))

    def loop(self, *, computed: bool) -> tuple[Node, ...]:
        """Return a Loop that ends after one iteration, by its trip count or by the condition of its body."""
        counted = self._rng.random() < 0.5
        carried = self._carried(self.operands)
        turn, go, stay = (self._names.fresh(base) for base in ("turn", "go", "stay"))
        if counted:
            trips = self._one() if computed else self._constant("one", np.array(1, np.int64))
            start, last = self._constant("start", np.array(True)), Node("Identity", (go,), (stay,))
        else:
            trips = "" if self._rng.random() < 0.5 else self._constant("most", np.array(7, np.int64))
            start = self._true() if computed else self._constant("start", np.array(True))
            last = Node("Not", (go,), (stay,)) if computed else constant(stay, tensor(np.array(False)))
        body, order = self._turn(carried, (ValueInfo(turn, _TURNS), ValueInfo(go, _GO)), {})
        body = replace(body, nodes=(*body.nodes, last), outputs=(ValueInfo(stay, _GO), *body.outputs))
        outputs, ends = self._stacked(order, len(carried), {})
        inputs = (trips, start, *carried.values())
        return (*self._nodes, Node("Loop", inputs, outputs, {"body": Attribute("graph", body)}), *ends)

    def scan(self) -> tuple[Node, ...]:
        """Return a Scan over one or two operands, each of which gets an axis of size 1 to be scanned along.

        Its body declares all types, because runtimes require the ranks of a Scan's outputs.
        """
        ranked = {name: kind for name, kind in self.operands.items() if self._can_scan(kind)}
        if not ranked or not all(self._can_scan(self._piece.type_of(name)) for name in self._piece.outputs):
            return self.branches(computed=False)
        chosen = self._rng.sample(sorted(ranked), min(len(ranked), self._rng.randint(1, 2)))
        carried = self._carried({name: kind for name, kind in ranked.items() if name not in chosen})
        slices = {name: self._names.fresh(f"{name}_slice") for name in chosen}
        axes = [self._rng.randint(0, len(ranked[name].shape or ())) for name in chosen]
        rows = [self._with_axis(name, axis) for name, axis in zip(chosen, axes, strict=True)]
        body, order = self._turn(
            carried, (), {name: (inner, ranked[name]) for name, inner in slices.items()}, whole=True
        )
        ends_at = {name: self._axis(name) for name in order[len(carried) :]}
        outputs, ends = self._stacked(order, len(carried), ends_at)
        given = {"body": Attribute("graph", body), "num_scan_inputs": Attribute("int", len(chosen))}
        if any(axes):
            given["scan_input_axes"] = Attribute("ints", tuple(axes))
        if any(ends_at.values()):
            given["scan_output_axes"] = Attribute("ints", tuple(ends_at.values()))
        return (*self._nodes, Node("Scan", (*carried.values(), *rows), outputs, given), *ends)

    def _can_scan(self, kind: TensorType) -> bool:
        return kind.shape is not None and gives("Scan", self._piece.opset, kind)

    def _axis(self, name: str) -> int:
        """Return the position of the scan axis; 0 with symbolic sizes, because runtimes have bugs with other axes
        there.
        """
        kind = self._piece.type_of(name)
        return self._rng.randint(0, len(kind.shape or ())) if is_static(kind) else 0

    def _copy(self, seen: Mapping[str, str]) -> tuple[tuple[Node, ...], dict[str, str], dict[str, Tensor]]:
        """Return the nodes under new names, the new names of the outputs, and the constants that move with them.

        `seen` maps values to the names under which the copy reads them.
        """
        piece, names = self._piece, dict(seen)
        names.update((name, self._names.fresh(f"{name}_own")) for name in piece.constants)
        results = {name: self._names.fresh(f"{name}_in") for name in piece.outputs}
        nodes = refresh(piece.nodes, {**names, **results}, self._names.fresh)
        return nodes, results, {names[name]: value for name, value in piece.constants.items()}

    def _infos(self, results: Mapping[str, str], *, whole: bool = False) -> tuple[ValueInfo, ...]:
        """Return the declarations of a body's results: with types, or sometimes without unless `whole`."""
        told = self._rng.random() < 0.5 or whole
        return tuple(ValueInfo(inner, self._piece.type_of(name) if told else None) for name, inner in results.items())

    def _otherwise(self) -> Graph:
        """Return a branch that is never taken: an operand, zeros, or the same nodes followed by another operator."""
        piece, rng = self._piece, self._rng
        nodes, results, constants = self._copy({})
        made: list[Node] = []
        again = False
        infos = []
        for name in piece.outputs:
            kind = piece.type_of(name)
            alike = [other for other, its in self.operands.items() if its == kind and is_static(kind)]
            ways = ["again", *(["pass"] if alike else []), *(["zero"] if _can_fill(kind, piece.opset) else [])]
            way, result = rng.choice(ways), self._names.fresh(f"{name}_else")
            infos.append(ValueInfo(result, kind))
            if way == "pass":
                made.append(Node("Identity", (rng.choice(alike),), (result,)))
            elif way == "zero":
                made.extend(self._zeros(kind, result))
            else:
                again = True
                made.append(_other_end(results[name], kind, result))
        kept = (*nodes, *made) if again else tuple(made)
        return Graph("otherwise", (), tuple(infos), kept, constants if again else {})

    def _zeros(self, kind: TensorType, result: str) -> tuple[Node, ...]:
        zero, shape = self._names.fresh(f"{result}_zero"), self._names.fresh(f"{result}_shape")
        return (
            constant(zero, tensor(np.zeros(()), kind.dtype)),
            constant(shape, tensor(np.array(kind.shape, np.int64))),
            Node("Expand", (zero, shape), (result,)),
        )

    def _carried(self, operands: Mapping[str, TensorType]) -> dict[str, str]:
        """Return outputs that can be carried values, each with the operand that is its initial value."""
        found: dict[str, str] = {}
        for name in self._piece.outputs:
            free = [
                other
                for other, kind in operands.items()
                if kind == self._piece.type_of(name) and is_static(kind) and other not in found.values()
            ]
            if free and self._rng.random() < 0.7:
                found[name] = self._rng.choice(free)
        return found

    def _turn(
        self,
        carried: Mapping[str, str],
        before: Sequence[ValueInfo],
        sliced: Mapping[str, tuple[str, TensorType]],
        *,
        whole: bool = False,
    ) -> tuple[Graph, list[str]]:
        """Return the body of a Loop or Scan, and the outputs of the piece in the order of the body's results."""
        states = {start: self._names.fresh(f"{start}_carried") for start in carried.values()}
        nodes, results, constants = self._copy({**states, **{name: inner for name, (inner, _) in sliced.items()}})
        order = [*carried, *(name for name in self._piece.outputs if name not in carried)]
        inputs = (
            *before,
            *(ValueInfo(states[start], self._piece.type_of(name)) for name, start in carried.items()),
            *(ValueInfo(inner, kind) for inner, kind in sliced.values()),
        )
        outputs = self._infos({name: results[name] for name in order}, whole=whole)
        return Graph("body", inputs, outputs, nodes, constants), order

    def _stacked(
        self, order: Sequence[str], carried: int, axes: Mapping[str, int]
    ) -> tuple[tuple[str, ...], list[Node]]:
        """Return the results of a Loop or Scan, and the nodes that squeeze the scan axis from those not carried."""
        stacked = {name: self._names.fresh(f"{name}_turns") for name in order[carried:]}
        ends: list[Node] = []
        for name, rows in stacked.items():
            ends.append(self._along("Squeeze", rows, axes.get(name, 0), name))
        return tuple(stacked.get(name, name) for name in order), ends

    def _with_axis(self, name: str, axis: int) -> str:
        result = self._names.fresh(f"{name}_rows")
        self._nodes.append(self._along("Unsqueeze", name, axis, result))
        return result

    def _along(self, op: str, name: str, axis: int, result: str) -> Node:
        if self._piece.opset < _AXES_AS_OPERAND:
            return Node(op, (name,), (result,), attributes({"axes": (axis,)}))
        return Node(op, (name, self._constant("axis", np.array([axis], np.int64))), (result,))

    def _true(self) -> str:
        """Return the name of a scalar that is true for every feed, but only known at run time.

        It is the negation of: an operand, or the list of its non-zero elements, has fewer than zero elements.
        """
        names = [name for name, kind in self.operands.items() if kind.dtype != "bfloat16"]
        if not names:
            return self._constant("always", np.array(True))
        counted = self._rng.choice(names)
        if self._rng.random() < 0.5:
            flat = self._add("Reshape", counted, self._constant("flat", np.array([-1], np.int64)))
            truth = self._names.fresh("truth")
            self._nodes.append(Node("Cast", (flat,), (truth,), attributes({"to": _BOOL})))
            counted = self._add("NonZero", truth)
        count = self._add("Size", counted)
        return self._add("Not", self._add("Less", count, self._constant("none", np.array(0, np.int64))))

    def _one(self) -> str:
        """Return the name of a 1 that is computed when the model runs."""
        result = self._names.fresh("once")
        self._nodes.append(Node("Cast", (self._true(),), (result,), attributes({"to": _INT64})))
        return result

    def _add(self, op: str, *operands: str) -> str:
        result = self._names.fresh(f"{operands[0]}_{op.lower()}")
        self._nodes.append(Node(op, operands, (result,)))
        return result

    def _constant(self, base: str, value: Array) -> str:
        name = self._names.fresh(base)
        self._nodes.append(constant(name, Tensor(numpy_name(value.dtype), value)))
        return name


def _can_fill(kind: TensorType, opset: int) -> bool:
    return is_static(kind) and kind.dtype in _FILLED and opset >= _MEASURED


def _other_end(name: str, kind: TensorType, result: str) -> Node:
    """Return a node that computes a value of the same type from `name`, a different value where possible."""
    if kind.dtype in ("float32", "float64", "int32", "int64"):
        return Node("Sub", (name, name), (result,))
    return Node("Identity", (name,), (result,))
