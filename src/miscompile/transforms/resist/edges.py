"""The edges of a main graph, by names that survive the removal of unrelated nodes, and their surroundings."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from miscompile.core.tensor import Tensor
from miscompile.graph.constant_nodes import constant_of
from miscompile.graph.edges import captured
from miscompile.graph.model import Model, Node, TensorType, ValueType
from miscompile.graph.randomness import MAY_DRAW
from miscompile.graph.typing import value_types

_RESERVED = str.maketrans({sign: f"%{ord(sign):02X}" for sign in "%+,={}@> "})


class Edge(NamedTuple):
    """One use of a value in a main graph; a tuple, because a twin looks at dozens of them.

    `consumer` is the position of the node that reads `value` as its operand `slot`, or None for a graph output (`slot`
    is then its position among the outputs) and for an unused value (`slot` is then -1). `name` is `value>first output
    of the consumer`, with `@1`, `@2` ... for further operands of the same node; `value>` is a graph output, `value>!`
    an unused value. Characters that specs reserve are percent-encoded.
    """

    name: str
    value: str
    consumer: int | None
    slot: int

    @property
    def dead(self) -> bool:
        """Whether the value is unused."""
        return self.slot < 0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Facts about a model for matching: types, producers, readers and constants of its main graph.

    `constants` are the values that a compiler can compute, `contents` the elements of literal ones; `readers` counts
    operand slots, graph outputs, and nodes whose bodies capture a value.
    """

    model: Model
    types: Mapping[str, ValueType]
    makers: Mapping[str, int]
    slots: Mapping[str, tuple[tuple[int, int], ...]]
    readers: Mapping[str, int]
    outputs: Mapping[str, int]
    constants: frozenset[str]
    contents: Mapping[str, Tensor]

    def type_of(self, value: str) -> TensorType | None:
        """Return the type of a tensor; None for other kinds of value and unknown types."""
        found = self.types.get(value)
        return found if isinstance(found, TensorType) else None

    def node(self, edge: Edge) -> Node | None:
        """Return the node that reads `edge`; None for outputs and unused values."""
        return None if edge.consumer is None else self.model.graph.nodes[edge.consumer]


def surroundings(model: Model) -> Surroundings:
    """Analyse `model` once, for any number of edges.

    onnx's inference runs only if the model does not declare all types. Raises ModelError when inference rejects the
    model.
    """
    graph = model.graph
    given = {info.name for info in graph.inputs}
    contents = {name: value for name, value in graph.initializers.items() if name not in given}
    known = {*contents, *(name for name in graph.sparse_initializers if name not in given)}
    makers: dict[str, int] = {}
    slots: dict[str, list[tuple[int, int]]] = {}
    readers: dict[str, int] = {}
    for place, node in enumerate(graph.nodes):
        for slot, value in enumerate(node.inputs):
            if value:
                slots.setdefault(value, []).append((place, slot))
                readers[value] = readers.get(value, 0) + 1
        for body in node.subgraphs():
            for value in captured(body):
                readers[value] = readers.get(value, 0) + 1
        if _is_known(node, known):
            known.update(filter(None, node.outputs))
            written = constant_of(node)
            if written is not None:
                contents[node.outputs[0]] = written
        makers.update((value, place) for value in node.outputs if value)
    outputs: dict[str, int] = {}
    for place, info in enumerate(graph.outputs):
        outputs[info.name] = -1 if info.name in outputs else place
        readers[info.name] = readers.get(info.name, 0) + 1
    whole = {value: tuple(places) for value, places in slots.items()}
    return Surroundings(
        model, _types(model, makers), makers, whole, readers, outputs, frozenset(known), contents
    )  # fmt: skip


def _is_known(node: Node, known: set[str]) -> bool:
    if node.op == "Constant" and node.domain in ("", "ai.onnx"):
        return True
    used = [value for value in node.inputs if value]
    if not used or node.op in MAY_DRAW or any(True for _ in node.subgraphs()):
        return False
    return known.issuperset(used)


def _types(model: Model, makers: Mapping[str, int]) -> Mapping[str, ValueType]:
    graph = model.graph
    types: dict[str, ValueType] = {**graph.types}
    for name, value in graph.initializers.items():
        types[name] = TensorType(value.dtype, value.shape)
    types.update((info.name, info.type) for info in (*graph.outputs, *graph.inputs) if info.type is not None)
    complete = all(name in types and getattr(types[name], "shape", ()) is not None for name in makers)
    return types if complete else {**types, **value_types(model, strict=False)}


def edges(around: Surroundings) -> Iterator[Edge]:
    """Yield the edges of the main graph: operands in the order of the nodes, then outputs, then unused values."""
    for place, node in enumerate(around.model.graph.nodes):
        seen: dict[str, int] = {}
        target = next((name for name in node.outputs if name), "")
        for slot, value in enumerate(node.inputs):
            if value:
                again = seen[value] = seen.get(value, -1) + 1
                yield Edge(_name(value, target, again), value, place, slot)
    for value, place in around.outputs.items():
        if place >= 0 and value in around.makers:
            yield Edge(f"{quoted(value)}>", value, None, place)
    for value in around.makers:
        if not around.readers.get(value):
            yield Edge(f"{quoted(value)}>!", value, None, -1)


def quoted(value: str) -> str:
    """Return the name of a value as encoded in the name of an edge."""
    return value if value.isidentifier() else value.translate(_RESERVED)


def _name(value: str, target: str, again: int) -> str:
    return f"{quoted(value)}>{quoted(target)}" + (f"@{again}" if again else "")
