"""The lowering of a whole graph: one function `program` that calls the lowerings of its operators in order.

Bodies (of If, Loop and Scan) become nested functions, which can use outer values and are passed to the operator's
lowering by keyword.
"""

import builtins
import keyword
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from onnx import defs

from miscompile.base.dtypes import BY_CODE
from miscompile.codegen.literals import literal
from miscompile.core.tensor import Tensor
from miscompile.graph.bodies import Typing, typing_of
from miscompile.graph.constant_nodes import constant_of
from miscompile.graph.edges import captured
from miscompile.graph.inline import inline
from miscompile.graph.model import Attribute, Graph, Model, Node
from miscompile.targets.lowering.control import refusal, turns_of
from miscompile.targets.lowering.table import Lowering, Table

TYPE_ATTRIBUTES = frozenset({"to", "dtype", "output_dtype", "output_datatype", "softmax_precision", "stash_type"})
"""Attributes whose integer is the number of an element type."""

TOLD = frozenset({"opset", "outputs", "op", "types", "turns"})
"""Keywords with further information for a lowering, besides its attributes."""

CAPTURED = "captured"
"""The name of the function, if a table has one, through which outer values captured by bodies are passed."""


class UnloweredError(NotImplementedError):
    """The graph contains a construct without a lowering, which the message names."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """A graph as source text.

    `definitions` defines the lowerings that are used, `program` the function of this name, whose parameters are the
    graph's inputs in order and which returns a tuple of its outputs. Free names in them are the framework's modules
    and, in `program`, the keys of `constants`.
    """

    definitions: str
    program: str
    constants: Mapping[str, Tensor]

    @property
    def source(self) -> str:
        """The whole text."""
        return f"{self.definitions}\n\n\n{self.program}" if self.definitions else self.program


def lower(model: Model, table: Table, taken: Collection[str] = ()) -> Lowered:
    """Return `model` as source text by the lowerings of `table`; values get names that are not in `taken`.

    Raises UnloweredError when an operator, attribute, operand or construct has no lowering, ModelError when the model's
    functions cannot be inlined, or a model with bodies breaks an operator's rules.
    """
    return _Writer(inline(model) if model.functions else model, table, taken).write()


class _Writer:
    """State shared by the program and its nested functions: names in use, constants, lowerings."""

    def __init__(self, model: Model, table: Table, taken: Collection[str]) -> None:
        self.model, self.table = model, table
        self.constants: dict[str, Tensor] = {}
        self.lowerings: set[str] = set()
        self._known: dict[tuple[str, int], str] = {}
        self._taken = {
            *taken,
            *table.definitions,
            *dir(builtins),
            *keyword.kwlist,
            "program",
            "tensor",
            "np",
            "torch",
            "jax",
            "jnp",
            "lax",
        }

    def write(self) -> Lowered:
        graph = self.model.graph
        place = typing_of(self.model) if any(True for node in graph.nodes for _ in node.subgraphs()) else None
        scope = _Scope(self, graph, {}, {}, place)
        inputs = [info.name for info in graph.inputs if info.name not in graph.initializers]
        body = "\n".join(scope.function("program", inputs))
        functions = [lowering.source for lowering in self.table.needed(self.lowerings)]
        return Lowered("\n\n\n".join(functions), f"{body}\n", self.constants)

    def constant(self, name: str, value: Tensor) -> str:
        """Return the Python name of a constant, which is added at its first use."""
        key = name, id(value)
        if key not in self._known:
            self._known[key] = self.unused(name)
            self.constants[self._known[key]] = value
        return self._known[key]

    def unused(self, name: str) -> str:
        """Return an unused Python name similar to `name`."""
        stem = re.sub(r"\W", "_", name, flags=re.ASCII) or "value"
        stem = f"v{stem}" if stem[0].isdigit() or stem.startswith("_") else stem
        found, number = stem, 2
        while found in self._taken:
            found, number = f"{stem}_{number}", number + 1
        self._taken.add(found)
        return found


class _Scope:
    """A graph or body, with access to the names and constants of enclosing graphs.

    `place` is the typing there, or None if no node has bodies.
    """

    def __init__(
        self,
        writer: _Writer,
        graph: Graph,
        names: Mapping[str, str],
        values: Mapping[str, Tensor],
        place: Typing | None,
    ) -> None:
        if graph.sparse_initializers:
            raise UnloweredError("sparse initialisers have no lowering")
        self.writer, self.graph, self.place = writer, graph, place
        self.names = dict(names)
        self.values = {**values, **graph.initializers}

    def function(self, name: str, inputs: Iterable[str]) -> Iterator[str]:
        """Yield the lines of a function of the graph's `inputs` that returns a tuple of its outputs."""
        yield f"def {name}({', '.join([self._define(x) for x in inputs])}):"
        for node in self.graph.nodes:
            yield from [f"    {line}" if line else "" for line in self._call(node)]
        results = "".join(f"{self._value(info.name)}, " for info in self.graph.outputs)
        yield f"    return ({results.rstrip()})"

    def _call(self, node: Node) -> Iterator[str]:
        if node.op == "Constant" and node.domain == "":
            self.values[node.outputs[0]] = _constant(node)
            return
        lowering = self.writer.table.operators.get(node.op) if node.domain in ("", "ai.onnx") else None
        if lowering is None:
            raise UnloweredError(f"operator {node.op} has no lowering")
        if _lacks_operands(node, self.writer.model.opset):
            raise UnloweredError(f"a call of {node.op} without a required operand has no lowering")
        self.writer.lowerings.add(lowering.name)
        bodies: dict[str, str] = {}
        if any(True for _ in node.subgraphs()):
            yield from self._write_bodies(node, bodies)
        words = [*self._operands(node, lowering), *self._keywords(node, lowering, bodies)]
        targets = [self._define(name) if name else "_" for name in node.outputs]
        yield f"{', '.join(targets)} = {lowering.name}({', '.join(words)})"

    def _write_bodies(self, node: Node, functions: dict[str, str]) -> Iterator[str]:
        """Yield the lines of functions for the bodies of `node`; enter their names into `functions` by attribute."""
        assert self.place is not None, "types are known where nodes have bodies"
        reason = refusal(node, self.place)
        if reason:
            raise UnloweredError(reason)
        seen = dict(self.names)
        outer = {name for body in node.subgraphs() for name in captured(body)}
        shared = sorted(name for name in outer if name in seen and name not in self.values)
        if CAPTURED in self.writer.table.definitions and len(shared) > 1:
            self.writer.lowerings.add(CAPTURED)
            seen |= {name: self.writer.unused(name) for name in shared}
            given = ", ".join([self.names[name] for name in shared])
            yield f"{', '.join([seen[name] for name in shared])} = {CAPTURED}({given})"
        names = [name for name, attribute in node.attributes.items() if attribute.kind == "graph"]
        for name, inner in zip(names, self.place.bodies(node), strict=True):
            body = _Scope(self.writer, node.attributes[name].value, seen, self.values, inner)
            functions[name] = self.writer.unused(name)
            yield ""
            yield from body.function(functions[name], [info.name for info in body.graph.inputs])
        yield ""

    def _operands(self, node: Node, lowering: Lowering) -> Iterator[str]:
        free = any(name and name not in self.values for name in node.inputs)
        for place, name in enumerate(node.inputs):
            if not name:
                yield "None"
            elif place in lowering.static:
                if name not in self.values:
                    raise UnloweredError(f"operand {place} of {node.op} has a lowering as a constant only")
                yield literal(_tuples(self.values[name].numbers().tolist()))
            elif free and place in lowering.plain and name in self.values and _scalar(self.values[name]):
                yield literal(self.values[name].numbers().tolist())
            else:
                yield self._value(name)

    def _keywords(self, node: Node, lowering: Lowering, bodies: Mapping[str, str]) -> Iterator[str]:
        for name, attribute in node.attributes.items():
            if name not in lowering.keywords or name in TOLD:
                raise UnloweredError(f"attribute {name} of {node.op} has no lowering")
            if name in bodies:
                yield f"{name}={bodies[name]}"
            elif name in lowering.plain and attribute.kind == "tensor" and attribute.value.array.size == 1:
                number = attribute.value.numbers().reshape(-1).tolist()[0]
                yield f"{name}={literal((number, attribute.value.dtype))}"
            else:
                yield f"{name}={self._attribute(name, attribute)}"
        told: dict[str, Any] = {"opset": self.writer.model.opset, "outputs": len(node.outputs), "op": node.op}
        told["types"] = tuple(self.values[name].dtype if name in self.values else None for name in node.inputs)
        told["turns"] = turns_of(node, self.place) if self.place is not None else None
        for name in sorted(TOLD & lowering.keywords):
            yield f"{name}={literal(told[name])}"

    def _attribute(self, name: str, attribute: Attribute) -> str:
        match attribute.kind:
            case "int" if name in TYPE_ATTRIBUTES and attribute.value in BY_CODE:
                return literal(BY_CODE[attribute.value].name)
            case "int" | "float" | "string" | "ints" | "floats" | "strings":
                return literal(attribute.value)
            case "tensor":
                return self.writer.constant(name, attribute.value)
            case _:
                raise UnloweredError(f"attribute {name} of kind {attribute.kind} has no lowering")

    def _value(self, name: str) -> str:
        """Return the Python name of a value."""
        if name in self.values:
            return self.writer.constant(name, self.values[name])
        if name not in self.names:
            raise UnloweredError(f"value {name} is not defined in the graph")
        return self.names[name]

    def _define(self, name: str) -> str:
        self.values.pop(name, None)  # a body's parameter hides outer values of its name
        self.names[name] = self.writer.unused(name)
        return self.names[name]


def _constant(node: Node) -> Tensor:
    value = constant_of(node)
    if value is None:
        raise UnloweredError(f"a Constant of {', '.join(node.attributes) or 'nothing'} has no lowering")
    return value


def _scalar(value: Tensor) -> bool:
    """Tell whether `value` is one number that frameworks accept instead of a tensor."""
    return value.shape == () and value.dtype not in ("bool", "string", "uint64")


def _tuples(value: Any) -> Any:  # noqa: ANN401 - an element, or nested lists of them
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _lacks_operands(node: Node, opset: int) -> bool:
    """Tell whether a call lacks an operand that the operator requires; a deliberately invalid program does."""
    least, optional = _omittable(node.op, opset)
    if len(node.inputs) < least:
        return True
    return any(not name and place not in optional for place, name in enumerate(node.inputs))


@cache
def _omittable(op: str, opset: int) -> tuple[int, Collection[int]]:
    """Return the least number of operands, with omitted ones, and the places of those that may be omitted."""
    try:
        known = defs.get_schema(op, opset)
    except defs.SchemaError:
        return 0, range(1 << 16)
    optional = defs.OpSchema.FormalParameterOption.Optional
    return known.min_input, [place for place, formal in enumerate(known.inputs) if formal.option == optional]
