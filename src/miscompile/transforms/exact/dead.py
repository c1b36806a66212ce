"""Dead code: unused nodes and constants, and optional results that are named without need or omitted.

Dead-code elimination must remove exactly these, and kernels with optional results take other paths when one of them is
named.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from miscompile.core.tensor import Tensor
from miscompile.graph.edges import reads
from miscompile.graph.model import Model, Node
from miscompile.graph.rename import NameSupply, refresh
from miscompile.ops.registry import schema
from miscompile.transforms.exact.placed import Placed
from miscompile.transforms.exact.scopes import NodeScope, rewrite, scopes
from miscompile.transforms.functions.calls import pure
from miscompile.transforms.functions.regions import names_of

_EXTRA: Mapping[str, int] = {"Dropout": 2, "MaxPool": 2, "LayerNormalization": 3, "LSTM": 3, "GRU": 2, "RNN": 2}
"""Operators whose optional results may be named without changing the first one, and their number of results.

Those of BatchNormalization imply training mode, and those of Attention need operands of their own.
"""

_COMMON = frozenset({"Add", "Sub", "Mul", "Div", "Relu", "Conv", "MatMul", "Gemm", "Sqrt", "Exp"})
"""Operators whose unused copy may be followed by an Identity, because every target can copy their result types."""

_AGAIN, _COPY, _NAMED, _DROPPED = "again", "copy", "named", "dropped"


@dataclass(frozen=True, slots=True)
class Dead(Placed):
    """Adds or removes dead code. Places are nodes and initialisers by their names.

    A node gets an unused copy, sometimes followed by an Identity; an initialiser gets an unused copy; unread optional
    results are named or omitted. A copy cannot fail, because the original does not.
    """

    stream_name: ClassVar[str] = "Dead"

    def places(self, model: Model) -> tuple[str, ...]:
        """Return the nodes and initialisers to which dead code can be added, or from which it can be removed."""
        return tuple(place for scope in scopes(model) for place, _ in _ways(scope, model))

    def apply(self, model: Model) -> Model:
        """Return `model` with other dead parts. Raises RejectedDraft when it is empty."""
        picked, names = self.picked(self.places(model)), NameSupply(names_of(model))

        def change(scope: NodeScope) -> NodeScope:
            for place, ways in tuple(_ways(scope, model)):
                if place in picked:
                    rng = self.stream(place)
                    scope = _changed(scope, place, rng.choice(ways), names, behind=rng.random() < 0.5)
            return scope

        return rewrite(model, change)


def _ways(scope: NodeScope, model: Model) -> Iterator[tuple[str, list[str]]]:
    """Yield the places of `scope` with the changes that apply there."""
    for name in scope.initializers:
        yield scope.place(name), [_COPY]
    read = {name for node in scope.nodes for name in reads(node)} | scope.output_names
    for node in scope.nodes:
        ways = [_AGAIN] if any(node.outputs) and pure((node,), model) else []
        count = _results(node, scope)
        if len([name for name in node.outputs if name]) < count:
            ways.append(_NAMED)
        if any(name and name not in read for name in node.outputs[1:]) and count and node.outputs[0]:
            ways.append(_DROPPED)
        if ways:
            yield scope.place_of(node), ways


def _results(node: Node, scope: NodeScope) -> int:
    """Return how many results `node` may have if all but the first are optional; else 0."""
    known = schema(node.op, scope.opset)
    if node.domain not in ("", "ai.onnx") or node.op not in _EXTRA or known is None:
        return 0
    return _EXTRA[node.op] if len(known.outputs) == _EXTRA[node.op] else 0


def _changed(scope: NodeScope, place: str, way: str, names: NameSupply, *, behind: bool) -> NodeScope:
    if way == _COPY:
        name = next(name for name in scope.initializers if scope.place(name) == place)
        copied: dict[str, Tensor] = {names.fresh(f"{name}_unused"): scope.initializers[name]}
        return replace(scope, initializers={**scope.initializers, **copied})
    at = next(at for at, node in enumerate(scope.nodes) if scope.place_of(node) == place)
    node = scope.nodes[at]
    if way == _AGAIN:
        made: tuple[Node, ...] = (node, *_unused(node, names, behind=behind and node.op in _COMMON))
    elif way == _NAMED:
        missing = [*node.outputs, *[""] * (_EXTRA[node.op] - len(node.outputs))]
        made = (replace(node, outputs=tuple(name or names.fresh(f"{node.op.lower()}_extra") for name in missing)),)
    else:
        read = {name for other in scope.nodes for name in reads(other)} | scope.output_names
        outputs = [name if name in read or not at else "" for at, name in enumerate(node.outputs)]
        while len(outputs) > 1 and not outputs[-1]:
            outputs.pop()
        made = (replace(node, outputs=tuple(outputs)),)
    return scope.with_nodes((*scope.nodes[:at], *made, *scope.nodes[at + 1 :]))


def _unused(node: Node, names: NameSupply, *, behind: bool) -> Iterator[Node]:
    """Yield a copy of `node` under other names, and with `behind` an Identity of its first result."""
    (twin,) = refresh((node,), {}, lambda name: names.fresh(f"{name}_unused"))
    yield twin
    if behind:
        first = next(filter(None, twin.outputs))
        yield Node("Identity", (first,), (names.fresh(f"{first}_same"),))
