"""Static types of the values in bodies (If, Loop, Scan) and of the results of their nodes, inferred node by node.

onnx's inference of a whole model does not return the types inside bodies. It also drops the shapes of the values
that a Loop carries, because they may change between iterations. This module keeps such a shape where the body
declares that it does not change.
Sources: https://onnx.ai/onnx/operators/onnx__Loop.html, onnx__Scan.html, onnx__If.html
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from miscompile.base.errors import ModelError
from miscompile.core.tensor import Tensor
from miscompile.graph.constant_nodes import constant_of
from miscompile.graph.infer import infer
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueType
from miscompile.graph.structural import STRUCTURAL_SIZE
from miscompile.graph.typing import value_types

CONTROL = frozenset({"If", "Loop", "Scan"})
"""Operators whose bodies this module can type."""

TypesByName = Mapping[str, ValueType]
Constants = Mapping[str, Tensor]


@dataclass(frozen=True, slots=True)
class Typing:
    """The types of the values visible in one scope, and the elements of its small constants."""

    types: TypesByName
    constants: Constants
    opset: int

    def within(self, graph: Graph, given: TypesByName) -> "Typing":
        """Return the typing inside the body `graph`, whose inputs have the types `given`."""
        return _typed(graph, Typing({**self.types, **given}, self.constants, self.opset))

    def bodies(self, node: Node) -> Iterator["Typing"]:
        """Yield the typing inside each body of `node`, in the order of `Node.subgraphs`.

        The inputs of a body have types only when the operator is in `CONTROL`.
        """
        for body in node.subgraphs():
            yield self.within(body, _parameters(node, body, self))


def typing_of(model: Model) -> Typing:
    """Return the typing of the main graph. Functions must have been inlined.

    Raises ModelError when a node breaks its operator's rules or contradicts a declared type.
    """
    whole = value_types(model)
    flowing = _typed(model.graph, Typing(whole, {}, model.opset))
    return Typing(
        {**flowing.types, **{k: _sharper(v, flowing.types.get(k)) for k, v in whole.items()}},
        flowing.constants,
        model.opset,
    )


def is_static(kind: ValueType | None) -> bool:
    """Tell whether a type is that of a dense tensor whose sizes are all numbers."""
    return isinstance(kind, TensorType) and kind.static


def _typed(graph: Graph, outer: Typing) -> Typing:
    types, constants = dict(outer.types), dict(outer.constants)
    for name, value in graph.initializers.items():
        types[name] = TensorType(value.dtype, value.shape)
        if value.array.size <= STRUCTURAL_SIZE:
            constants[name] = value
    for name, kind in graph.types.items():
        types[name] = _sharper(kind, types.get(name))
    place = Typing(types, constants, outer.opset)
    for node in graph.nodes:
        given = constant_of(node)
        if given is not None:
            constants[node.outputs[0]] = given
            types[node.outputs[0]] = TensorType(given.dtype, given.shape)
            continue
        for name, found in zip(node.outputs, _results(node, place), strict=False):
            if name and found is not None:
                types[name] = _sharper(found, types.get(name))
    return place


def _sharper(one: ValueType, other: ValueType | None) -> ValueType:
    """Return the more specific type."""
    if other is None or is_static(one):
        return one
    if is_static(other):
        return other
    return other if isinstance(one, TensorType) and one.shape is None else one


def _results(node: Node, place: Typing) -> tuple[ValueType | None, ...]:
    if node.op in CONTROL and not node.domain:
        return _block_results(node, place)
    if any(name and name not in place.types for name in node.inputs) or any(True for _ in node.subgraphs()):
        return ()
    known = {name: place.constants[name] for name in node.inputs if name in place.constants}
    try:
        return infer(node, place.types, place.opset, known)
    except ModelError:
        return ()


def _parameters(node: Node, body: Graph, place: Typing) -> dict[str, ValueType]:
    """Return the types of a body's inputs: the declared ones, or else those implied by the node's operands."""
    found = zip(body.inputs, _given(node, place), strict=False)
    given = {info.name: kind for info, kind in found if kind is not None}
    for info in body.inputs:
        if info.type is not None:
            given[info.name] = _sharper(info.type, given.get(info.name))
    return given


def _given(node: Node, place: Typing) -> list[ValueType | None]:
    """Return the types that operands imply for a body's inputs; only dtypes for carried values, whose shapes may
    change."""
    if node.domain or node.op not in ("Loop", "Scan"):
        return []
    kinds = [place.types.get(name) if name else None for name in node.inputs]
    if node.op == "Loop":
        carried = [TensorType(kind.dtype, None) if isinstance(kind, TensorType) else kind for kind in kinds[2:]]
        return [TensorType("int64", ()), TensorType("bool", ()), *carried]
    count = int(node.attributes["num_scan_inputs"].value)
    states, scanned = kinds[: len(kinds) - count], kinds[len(kinds) - count :]
    axes = scan_axes(node, "scan_input_axes", count)
    return [*states, *(_sliced(kind, axis) for kind, axis in zip(scanned, axes, strict=True))]


def scan_axes(node: Node, name: str, count: int) -> tuple[int, ...]:
    """Return the axes that a Scan names in the attribute `name`, by default the first of each of `count` values."""
    attribute = node.attributes.get(name)
    return (0,) * count if attribute is None else tuple(attribute.value)


def _sliced(kind: ValueType | None, axis: int) -> ValueType | None:
    if not isinstance(kind, TensorType) or not kind.shape:
        return TensorType(kind.dtype, None) if isinstance(kind, TensorType) else None
    at = axis % len(kind.shape)
    return TensorType(kind.dtype, (*kind.shape[:at], *kind.shape[at + 1 :]))


def _block_results(node: Node, place: Typing) -> tuple[ValueType | None, ...]:
    bodies = list(node.subgraphs())
    known = [
        [inner.types.get(info.name, info.type) for info in body.outputs]
        for body, inner in zip(bodies, place.bodies(node), strict=True)
    ]
    if node.op == "If":
        return tuple(_common(kinds) for kinds in zip(*known, strict=False))
    body, kinds = bodies[0], known[0]
    given = _parameters(node, body, place)
    entered = [given.get(info.name) for info in body.inputs]
    if node.op == "Loop":
        carried = len(node.inputs) - 2
        trips = constant_turns(node, body, place.constants)
        first = [_common([one, other]) for one, other in zip(entered[2:], kinds[1 : carried + 1], strict=False)]
        return (*first, *(_stacked(kind, trips, 0) for kind in kinds[carried + 1 :]))
    count = int(node.attributes["num_scan_inputs"].value)
    states = len(node.inputs) - count
    length = _length(node, place, count)
    axes = scan_axes(node, "scan_output_axes", len(kinds) - states)
    rows = [_stacked(kind, length, axis) for kind, axis in zip(kinds[states:], axes, strict=False)]
    return (*kinds[:states], *rows)


def constant_turns(node: Node, body: Graph, constants: Constants) -> int | None:
    """Return the number of iterations of a Loop, or None if it depends on the inputs."""
    trips = constants.get(node.inputs[0]) if node.inputs and node.inputs[0] else None
    first = node.inputs[1] if len(node.inputs) > 1 else ""
    if trips is None or (first and not _is_true(constants.get(first))):
        return None
    return int(trips.array.reshape(-1)[0]) if _goes_on(body) else None


def _goes_on(body: Graph) -> bool:
    """Tell whether a Loop's body returns its condition unchanged, or the constant true."""
    name = body.outputs[0].name
    made = {name: node for node in body.nodes for name in node.outputs}
    while name in made and made[name].op == "Identity":
        name = made[name].inputs[0]
    if len(body.inputs) > 1 and name == body.inputs[1].name:
        return True
    value = body.initializers.get(name)
    if name in made and value is None:
        value = constant_of(made[name])
    return _is_true(value)


def _is_true(value: Tensor | None) -> bool:
    return value is not None and value.array.size == 1 and bool(value.array.reshape(-1)[0])


def _length(node: Node, place: Typing, count: int) -> int | None:
    axes = scan_axes(node, "scan_input_axes", count)
    for name, axis in zip(node.inputs[-count:], axes, strict=False):
        kind = place.types.get(name)
        if isinstance(kind, TensorType) and kind.shape:
            size = kind.shape[axis % len(kind.shape)]
            if isinstance(size, int):
                return size
    return None


def _stacked(kind: ValueType | None, length: int | None, axis: int) -> ValueType | None:
    if not isinstance(kind, TensorType):
        return None
    if kind.shape is None:
        return TensorType(kind.dtype, None)
    at = axis % (len(kind.shape) + 1)
    return TensorType(kind.dtype, (*kind.shape[:at], length, *kind.shape[at:]))


def _common(kinds: list[ValueType | None] | tuple[ValueType | None, ...]) -> ValueType | None:
    """Return the type on which all agree; sizes or ranks that differ become unknown."""
    first = kinds[0]
    if all(kind == first for kind in kinds):
        return first
    shaped = [kind for kind in kinds if isinstance(kind, TensorType)]
    if len(shaped) < len(kinds) or len({kind.dtype for kind in shaped}) > 1:
        return None
    shapes = [kind.shape for kind in shaped]
    ranks = {None if shape is None else len(shape) for shape in shapes}
    if len(ranks) > 1 or None in ranks:
        return TensorType(shaped[0].dtype, None)
    sizes = zip(*[shape for shape in shapes if shape is not None], strict=True)
    return TensorType(shaped[0].dtype, tuple(each[0] if len(set(each)) == 1 else None for each in sizes))
