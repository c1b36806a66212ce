"""Operators replaced by the function bodies that onnx defines them by, or by calls of functions that hold these bodies.

Kernel and body must agree: exactly where the operator moves, compares or selects, up to rounding where it computes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from miscompile.base.errors import RejectedDraft
from miscompile.graph.equality import difference
from miscompile.graph.model import Function, Model, Node, TensorType, ValueType
from miscompile.graph.prune import callee_key, function_key
from miscompile.graph.rename import NameSupply
from miscompile.transforms.exact.bodies import body_of, has_body
from miscompile.transforms.exact.inline import inlined
from miscompile.transforms.exact.placed import Placed
from miscompile.transforms.exact.scopes import NodeScope, rewrite, scopes, types_by_scope
from miscompile.transforms.exact.wrap_kinds import PLAIN
from miscompile.transforms.functions.calls import MAY_DRAW
from miscompile.transforms.functions.compose import importing, own_domain

EXACT = frozenset({
    "CastLike", "CenterCropPad", "DepthToSpace", "GreaterOrEqual", "LessOrEqual", "SequenceMap", "SpaceToDepth",
})  # fmt: skip
"""Operators whose bodies move, convert and compare: the same bits whatever they are given."""

EXACT_IN_INTEGERS = frozenset({"Clip", "PRelu", "Range"})
"""Those whose bodies give the same integers. Of floats, the sign of a zero may differ, or the last bit of a sum."""

_INTEGERS = ("int32", "int64")
"""Integers for which the operators of these bodies have kernels everywhere."""

_IR_FUNCTIONS = 8

ExpansionExactness = Literal["exact", "rounding"]


@dataclass(frozen=True, slots=True)
class Expand(Placed):
    """Presents operators as their function bodies. Places are nodes, in bodies too.

    With `exact` only operators whose bodies give the same bits are replaced; without, all that are faithful up to
    rounding as well. `kept` leaves the bodies in model-local functions, one for all nodes that can share it.
    """

    stream_name: ClassVar[str] = "Expand"

    exact: bool = True
    kept: bool = False

    def places(self, model: Model) -> tuple[str, ...]:
        """Return the nodes that have a faithful body."""
        return self._places(model, types_by_scope(model))

    def _places(self, model: Model, types: Mapping[str, Mapping[str, ValueType]]) -> tuple[str, ...]:
        found = []
        for scope in scopes(model):
            known = types.get(scope.path, {})
            found += [scope.place_of(node) for node in scope.nodes if self._body(node, scope, known, model)]
        return tuple(found)

    def apply(self, model: Model) -> Model:
        """Return `model` with operators as bodies. Raises RejectedDraft when none has one."""
        types = types_by_scope(model)
        picked = self.picked(self._places(model, types))
        domain = own_domain(model)
        made: list[Function] = []
        names = NameSupply(function.name for function in model.functions)
        calls: set[str] = set()

        def change(scope: NodeScope) -> NodeScope:
            nodes = []
            for node in scope.nodes:
                place = scope.place_of(node)
                body = self._body(node, scope, types.get(scope.path, {}), model) if place in picked else None
                if body is not None:
                    function = _shared(replace(body[0], domain=domain), made, names)
                    node = replace(body[1], op=function.name, domain=domain)
                    calls.add(place)
                nodes.append(node)
            return replace(scope, nodes=tuple(nodes)) if calls else scope

        called = rewrite(model, change)
        whole = replace(called, functions=(*called.functions, *made))
        if not self.kept:
            return inlined(whole, frozenset(calls))
        return importing(replace(whole, ir_version=max(model.ir_version, _IR_FUNCTIONS)))

    def exactness(self, model: Model) -> ExpansionExactness:
        """Tell whether all operators that `apply` replaces in `model` have bodies that give the same bits."""
        picked = self.picked(self.places(model))
        ops = {node.op for scope in scopes(model) for node in scope.nodes if scope.place_of(node) in picked}
        return "exact" if ops <= EXACT | EXACT_IN_INTEGERS and self.exact else "rounding"

    def _body(
        self, node: Node, scope: NodeScope, types: Mapping[str, ValueType], model: Model
    ) -> tuple[Function, Node] | None:
        """Return function and call for `node`, None where it stays."""
        if node.domain not in ("", "ai.onnx") or node.op in MAY_DRAW or not has_body(node.op, scope.opset):
            return None
        if scope.path.startswith("fn:") or callee_key(node) in map(function_key, model.functions):
            return None
        if self.kept and not all(_common(types.get(name)) for name in (*node.inputs, *node.outputs) if name):
            return None
        if not _faithful(node) or (self.exact and not _exact(node, types)):
            return None
        try:
            return body_of(node, scope.opset, types)
        except RejectedDraft:
            return None


def _exact(node: Node, types: Mapping[str, ValueType]) -> bool:
    """Tell whether the body of `node` gives the same bits."""
    if node.op in EXACT:
        return True
    known = types.get(node.outputs[0])
    return node.op in EXACT_IN_INTEGERS and isinstance(known, TensorType) and known.dtype in _INTEGERS


def _common(kind: ValueType | None) -> bool:
    """Tell whether a function can be given this type by every runtime; small floats are not known to all."""
    return not isinstance(kind, TensorType) or kind.dtype in PLAIN


def _faithful(node: Node) -> bool:
    """Tell whether the body of `node` means what the operator's page says.

    Clip has the limits of its type where a bound is left out, which infinity is beyond; the body has none. What
    Attention hands out for masked scores is the lowest number to some and minus infinity to others.
    """
    if node.op == "Clip":
        return len(node.inputs) == 3 and all(node.inputs)
    return node.op != "Attention" or len(node.outputs) < 4 or not node.outputs[3]


def _shared(function: Function, made: list[Function], names: NameSupply) -> Function:
    """Return the one of the functions `made` that does what `function` does, or that under a name of its own."""
    for other in made:
        if difference(replace(function, name=other.name), other) is None:
            return other
    made.append(replace(function, name=names.fresh(f"{function.name}_body")))
    return made[-1]
