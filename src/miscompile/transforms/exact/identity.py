"""Identity nodes on edges, behind inputs and before outputs; and Identity nodes removed.

An Identity breaks a pattern, separates a value from a graph output, or cannot be removed because both of its ends are
part of the signature. Source: https://onnx.ai/onnx/operators/onnx__Identity.html
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from miscompile.graph.edges import reads
from miscompile.graph.model import Model, Node, TensorType, ValueType
from miscompile.graph.rename import NameSupply, redirect
from miscompile.transforms.exact.constness import constants
from miscompile.transforms.exact.placed import Placed
from miscompile.transforms.exact.schemas import takes
from miscompile.transforms.exact.scopes import NodeScope, rewrite, scopes, types_by_scope
from miscompile.transforms.exact.structural import structural_values
from miscompile.transforms.exact.wrap_kinds import PLAIN
from miscompile.transforms.functions.regions import names_of

_Types = Mapping[str, Mapping[str, ValueType]]


@dataclass(frozen=True, slots=True)
class Identity(Placed):
    """Adds Identity nodes. Places are values: all readers of one, or `value:out` for the output itself.

    Bodies that capture the value read the copy as well. Values that hold sizes and the like get no Identity unless
    `structural`, because a compiler may not know them behind one. Constants get none unless `constants`, because
    kernels pack constant weights and then add in another order. Functions stay unchanged, because their types are not
    known.
    """

    stream_name: ClassVar[str] = "Identity"

    structural: bool = False
    constants: bool = False

    def places(self, model: Model) -> tuple[str, ...]:
        """Return the values that an Identity can follow."""
        return _places(model, types_by_scope(model), self._fixed(model))

    def apply(self, model: Model) -> Model:
        """Return `model` with Identity nodes. Raises RejectedDraft when it has no value for one."""
        types, fixed = types_by_scope(model), self._fixed(model)
        picked, names = self.picked(_places(model, types, fixed)), NameSupply(names_of(model))

        def change(scope: NodeScope) -> NodeScope:
            for place, name, at_output in tuple(_edges(scope, types, fixed)):
                if place in picked:
                    scope = (_before_output if at_output else _after)(scope, name, names)
            return scope

        return rewrite(model, change)

    def _fixed(self, model: Model) -> frozenset[str]:
        fixed = frozenset() if self.structural else structural_values(model)
        if self.constants:
            return fixed
        return fixed.union(*({name for name, _ in constants(scope)} for scope in scopes(model)))


def _places(model: Model, types: _Types, fixed: frozenset[str]) -> tuple[str, ...]:
    return tuple(place for scope in scopes(model) for place, _, _ in _edges(scope, types, fixed))


def _edges(scope: NodeScope, types: _Types, fixed: frozenset[str]) -> Iterator[tuple[str, str, bool]]:
    """Yield place, value, and whether the Identity makes the scope's output of that name."""
    known = types.get(scope.path, {})
    read = {name for node in scope.nodes for name in reads(node)}
    made = [name for node in scope.nodes for name in node.outputs if name]
    barred = fixed | set(scope.sparse)

    def fits(name: str) -> bool:
        kind = known.get(name)
        common = not isinstance(kind, TensorType) or kind.dtype in PLAIN
        return common and takes("Identity", scope.opset, kind)

    for name in (*dict.fromkeys((*(info.name for info in scope.inputs), *scope.initializers)), *made):
        if name in read and name not in barred and fits(name):
            yield scope.place(name), name, False
    for name in made:
        if name in scope.output_names and fits(name):
            yield f"{scope.place(name)}:out", name, True


def _after(scope: NodeScope, name: str, names: NameSupply) -> NodeScope:
    """Redirect every reader of `name` to a copy; the scope's output stays."""
    copy = names.fresh(f"{name}_same")
    users = [place for place, node in enumerate(scope.nodes) if name in reads(node)]
    if not users:
        return scope
    nodes = [redirect(node, {name: copy}) for node in scope.nodes]
    nodes.insert(users[0], Node("Identity", (name,), (copy,)))
    return replace(scope, nodes=tuple(nodes))


def _before_output(scope: NodeScope, name: str, names: NameSupply) -> NodeScope:
    """Make the output `name` a copy of a value that its node computes under another name."""
    inner = names.fresh(f"{name}_inner")
    at = next(place for place, node in enumerate(scope.nodes) if name in node.outputs)
    node = scope.nodes[at]
    maker = replace(node, outputs=tuple(inner if output == name else output for output in node.outputs))
    nodes = (*scope.nodes[:at], maker, Node("Identity", (inner,), (name,)), *scope.nodes[at + 1 :])
    return replace(scope, nodes=nodes)


@dataclass(frozen=True, slots=True)
class NoIdentity(Placed):
    """Removes Identity nodes. Places are these nodes.

    One between an input, an initialiser or another output and an output of the same scope must stay.
    """

    stream_name: ClassVar[str] = "NoIdentity"

    def places(self, model: Model) -> tuple[str, ...]:
        """Return the Identity nodes that can be removed if all others are."""
        return tuple(place for scope in scopes(model) for place in _bare(scope, None)[1])

    def apply(self, model: Model) -> Model:
        """Return `model` without Identity nodes. Raises RejectedDraft when none can be removed."""
        picked = self.picked(self.places(model))
        return rewrite(model, lambda scope: _bare(scope, picked)[0])


def _bare(scope: NodeScope, picked: frozenset[str] | None) -> tuple[NodeScope, list[str]]:
    done: list[str] = []
    for node in scope.nodes:
        place = scope.place_of(node)
        if _is_identity(node) and (picked is None or place in picked):
            here = next(other for other in scope.nodes if other.outputs == node.outputs)
            shorter = _without(scope, here)
            if shorter is not None:
                scope = shorter
                done.append(place)
    return scope, done


def _is_identity(node: Node) -> bool:
    return node.op == "Identity" and node.domain in ("", "ai.onnx") and len(node.inputs) == 1 and bool(node.inputs[0])


def _without(scope: NodeScope, node: Node) -> NodeScope | None:
    """Return `scope` without the Identity `node`; None when that is impossible."""
    (source,), (result,) = node.inputs, node.outputs
    others = tuple(other for other in scope.nodes if other is not node)
    if result not in scope.output_names:
        return scope.with_nodes(tuple(redirect(other, {result: source}) for other in others))
    at = next((place for place, other in enumerate(others) if source in other.outputs), None)
    if at is None or source in scope.output_names:
        return None
    maker = replace(others[at], outputs=tuple(result if name == source else name for name in others[at].outputs))
    rest = tuple(redirect(other, {source: result}) for other in others)
    return scope.with_nodes((*rest[:at], redirect(maker, {source: result}), *rest[at + 1 :]))
