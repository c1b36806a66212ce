"""The lowering of a whole graph: one function `program` that calls the lowerings of its operators in order."""

import builtins
import keyword
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from miscompile.base.dtypes import BY_CODE
from miscompile.core.tensor import Tensor
from miscompile.graph.inline import inline
from miscompile.graph.model import Attribute, Model, Node
from miscompile.lowering.table import Lowering, Table

TYPE_ATTRIBUTES = frozenset({"to", "dtype", "output_dtype", "output_datatype", "softmax_precision", "stash_type"})
"""Attributes whose integer is a code of an element type."""

TOLD = frozenset({"opset", "outputs", "op", "types"})
"""Keywords that tell a lowering more than its attributes."""


class UnloweredError(NotImplementedError):
    """The graph has something that has no lowering; the message says what."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """A graph as source text.

    `source` defines the lowerings that are used and the function `program`, whose parameters stand for the graph's
    inputs in their order and which returns a tuple of its outputs. Free names in it are the framework's modules
    and the keys of `constants`.
    """

    source: str
    constants: Mapping[str, Tensor]


def lower(model: Model, table: Table) -> Lowered:
    """Return `model` as source text by the lowerings of `table`.

    Raises UnloweredError when an operator, attribute, operand or construct has no lowering, ModelError when the model's
    functions cannot be inlined.
    """
    return _Writer(inline(model) if model.functions else model, table).write()


class _Writer:
    def __init__(self, model: Model, table: Table) -> None:
        self.model, self.table = model, table
        self.names: dict[str, str] = {}
        self.values: dict[str, Tensor] = dict(model.graph.initializers)
        self.constants: dict[str, Tensor] = {}
        self.lowerings: set[str] = set()
        self._taken = {
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
        if graph.sparse_initializers:
            raise UnloweredError("sparse initialisers have no lowering")
        inputs = [info.name for info in graph.inputs if info.name not in self.values]
        parameters = [self._define(name) for name in inputs]
        lines = [f"    {line}" for node in graph.nodes for line in self._call(node)]
        results = "".join(f"{self._value(info.name)}, " for info in graph.outputs)
        functions = [lowering.source for lowering in self.table.needed(self.lowerings)]
        body = "\n".join([f"def program({', '.join(parameters)}):", *lines, f"    return ({results.rstrip()})"])
        return Lowered("\n\n\n".join([*functions, body]) + "\n", self.constants)

    def _call(self, node: Node) -> Iterator[str]:
        if node.op == "Constant" and node.domain == "":
            self.values[node.outputs[0]] = _constant(node)
            return
        lowering = self.table.operators.get(node.op) if node.domain in ("", "ai.onnx") else None
        if lowering is None:
            raise UnloweredError(f"operator {node.op} has no lowering")
        self.lowerings.add(lowering.name)
        words = [*self._operands(node, lowering), *self._keywords(node, lowering)]
        targets = [self._define(name) if name else "_" for name in node.outputs]
        yield f"{', '.join(targets)} = {lowering.name}({', '.join(words)})"

    def _operands(self, node: Node, lowering: Lowering) -> Iterator[str]:
        free = any(name and name not in self.values for name in node.inputs)
        for place, name in enumerate(node.inputs):
            if not name:
                yield "None"
            elif place in lowering.static:
                if name not in self.values:
                    raise UnloweredError(f"operand {place} of {node.op} has a lowering as a constant only")
                yield _literal(self.values[name].numbers().tolist())
            elif free and place in lowering.plain and name in self.values and _scalar(self.values[name]):
                yield _literal(self.values[name].numbers().tolist())
            else:
                yield self._value(name)

    def _keywords(self, node: Node, lowering: Lowering) -> Iterator[str]:
        for name, attribute in node.attributes.items():
            if name not in lowering.keywords or name in TOLD:
                raise UnloweredError(f"attribute {name} of {node.op} has no lowering")
            if name in lowering.plain and attribute.kind == "tensor" and attribute.value.array.size == 1:
                number = attribute.value.numbers().reshape(-1).tolist()[0]
                yield f"{name}={_literal((number, attribute.value.dtype))}"
            else:
                yield f"{name}={self._attribute(name, attribute)}"
        told: dict[str, Any] = {"opset": self.model.opset, "outputs": len(node.outputs), "op": node.op}
        told["types"] = tuple(self.values[name].dtype if name in self.values else None for name in node.inputs)
        for name in sorted(TOLD & lowering.keywords):
            yield f"{name}={told[name]!r}"

    def _attribute(self, name: str, attribute: Attribute) -> str:
        match attribute.kind:
            case "int" if name in TYPE_ATTRIBUTES and attribute.value in BY_CODE:
                return repr(BY_CODE[attribute.value].name)
            case "int" | "float" | "string" | "ints" | "floats" | "strings":
                return _literal(attribute.value)
            case "tensor":
                constant = self._unused(name)
                self.constants[constant] = attribute.value
                return constant
            case _:
                raise UnloweredError(f"attribute {name} of kind {attribute.kind} has no lowering")

    def _value(self, name: str) -> str:
        """Return the Python name of a value; a constant is taken in when it is first used."""
        if name not in self.names:
            if name not in self.values:
                raise UnloweredError(f"value {name} is not defined in the graph")
            self.constants[self._define(name)] = self.values[name]
        return self.names[name]

    def _define(self, name: str) -> str:
        self.names[name] = self._unused(name)
        return self.names[name]

    def _unused(self, name: str) -> str:
        """Return a Python name like `name` that stands for nothing yet."""
        stem = re.sub(r"\W", "_", name, flags=re.ASCII) or "value"
        stem = f"v{stem}" if stem[0].isdigit() or stem.startswith("_") else stem
        found, number = stem, 2
        while found in self._taken:
            found, number = f"{stem}_{number}", number + 1
        self._taken.add(found)
        return found


_PLAIN_CONSTANTS = {
    "value_int": "int64", "value_ints": "int64", "value_float": "float32", "value_floats": "float32",
}  # fmt: skip


def _constant(node: Node) -> Tensor:
    """Return the value of a Constant node (https://onnx.ai/onnx/operators/onnx__Constant.html)."""
    for name, attribute in node.attributes.items():
        if name == "value":
            assert isinstance(attribute.value, Tensor)
            return attribute.value
        if name in _PLAIN_CONSTANTS:
            return Tensor(_PLAIN_CONSTANTS[name], np.array(attribute.value, _PLAIN_CONSTANTS[name]))
    raise UnloweredError(f"a Constant of {', '.join(node.attributes) or 'nothing'} has no lowering")


def _scalar(value: Tensor) -> bool:
    """Tell whether `value` is one number that frameworks take in place of a tensor."""
    return value.shape == () and value.dtype not in ("bool", "string", "uint64")


def _literal(value: Any) -> str:  # noqa: ANN401 - numbers, text, and sequences of them
    """Return `value` as source; sequences become tuples, and numbers that have no literal calls of float."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    if isinstance(value, Iterable) and not isinstance(value, str):
        items = [_literal(item) for item in value]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    return repr(value)
