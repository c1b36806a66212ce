"""Other encodings of constants: initialiser, Constant node of a tensor or of numbers, default of a graph input.

A constant keeps its name and its bytes, so results do not change. Passes that look for initialisers, for Constant nodes
or for values that nothing can override (shape inference, folding, fusion of weights) take other paths. Source:
https://onnx.ai/onnx/repo-docs/IR.html#graphs (initialisers as default values from IR 4 on).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from miscompile.core.tensor import Tensor
from miscompile.graph.constant_nodes import NUMBERS, constant, constant_of, constant_of_numbers
from miscompile.graph.edges import reads
from miscompile.graph.model import Model, Node, TensorType, ValueInfo
from miscompile.transforms.exact.placed import Placed
from miscompile.transforms.exact.schemas import gives
from miscompile.transforms.exact.scopes import NodeScope, rewrite, scopes
from miscompile.transforms.exact.structural import structural_values

_IR_DEFAULTS = 4
"""IR version in which initialisers need not be inputs, and an initialiser that is an input is its default."""


@dataclass(frozen=True, slots=True)
class Constness(Placed):
    """Encodes constants differently. Places are the names of constants, in bodies too.

    With `structural`, constants that hold sizes, axes and the like may become inputs with a default as well; without,
    they change only between initialiser and Constant node. Functions keep their Constant nodes, because they have no
    initialisers. Without `overridable` no constant becomes an input, because only that change may make kernels pack
    weights differently and add in another order.
    """

    stream_name: ClassVar[str] = "Constness"

    structural: bool = False
    overridable: bool = True

    def places(self, model: Model) -> tuple[str, ...]:
        """Return the constants that have another encoding."""
        fixed = self._fixed(model)
        return tuple(
            place
            for scope in scopes(model)
            for name, _ in constants(scope)
            for place in (scope.place(name),)
            if self._ways(model, scope, name, fixed)
        )

    def apply(self, model: Model) -> Model:
        """Return `model` with constants encoded differently. Raises RejectedDraft when it has none."""
        picked, fixed = self.picked(self.places(model)), self._fixed(model)

        def change(scope: NodeScope) -> NodeScope:
            for name, value in constants(scope):
                place = scope.place(name)
                if place in picked:
                    draw = self.stream(place)
                    way = draw.choice(self._ways(model, scope, name, fixed))
                    if way == "node" and _has_numbers(scope, name, value) and draw.random() < 0.5:
                        way = "numbers"
                    scope = _SAID[way](scope, name, value)
            return scope

        return rewrite(model, change)

    def _fixed(self, model: Model) -> frozenset[str]:
        return frozenset() if self.structural else structural_values(model)

    def _ways(self, model: Model, scope: NodeScope, name: str, fixed: frozenset[str]) -> list[str]:
        """Return the other encodings of constant `name` of `scope`."""
        if scope.kind == "function" or model.ir_version < _IR_DEFAULTS:
            return []
        if name not in scope.initializers:
            return ["initializer"]
        kind = TensorType(scope.initializers[name].dtype, None)
        ways = ["node"] if gives("Constant", scope.opset, kind) else []
        if self.overridable and scope.kind == "main" and name not in fixed and name not in scope.output_names:
            ways.append("input")
        return ways


def _has_numbers(scope: NodeScope, name: str, value: Tensor) -> bool:
    return scope.opset >= NUMBERS and constant_of_numbers(name, value) is not None


def constants(scope: NodeScope) -> Iterator[tuple[str, Tensor]]:
    """Yield the constants of a scope with their values: initialisers that nothing overrides, and Constant nodes."""
    given = scope.given
    yield from ((name, value) for name, value in scope.initializers.items() if name not in given)
    for node in scope.nodes:
        value = constant_of(node)
        if value is not None:
            yield node.outputs[0], value


def _as_node(scope: NodeScope, name: str, value: Tensor) -> NodeScope:
    """Put a Constant node before the first node that reads it."""
    return _with_node(scope, name, constant(name, value))


def _as_numbers(scope: NodeScope, name: str, value: Tensor) -> NodeScope:
    node = constant_of_numbers(name, value)
    assert node is not None  # `apply` asks for such constants only
    return _with_node(scope, name, node)


def _with_node(scope: NodeScope, name: str, node: Node) -> NodeScope:
    first = next((place for place, one in enumerate(scope.nodes) if name in reads(one)), len(scope.nodes))
    kept = {other: known for other, known in scope.initializers.items() if other != name}
    return replace(scope, initializers=kept, nodes=(*scope.nodes[:first], node, *scope.nodes[first:]))


def _as_initializer(scope: NodeScope, name: str, value: Tensor) -> NodeScope:
    nodes = tuple(node for node in scope.nodes if node.outputs != (name,))
    return replace(scope, initializers={**scope.initializers, name: value}, nodes=nodes)


def _as_input(scope: NodeScope, name: str, value: Tensor) -> NodeScope:
    types = {other: kind for other, kind in scope.types.items() if other != name}
    inputs = (*scope.inputs, ValueInfo(name, TensorType(value.dtype, value.shape)))
    return replace(scope, inputs=inputs, types=types)


_SAID = {"node": _as_node, "numbers": _as_numbers, "initializer": _as_initializer, "input": _as_input}
