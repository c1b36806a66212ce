"""Operators replaced by the function bodies that define them in onnx, or by calls of functions with these bodies.

Kernel and body must agree: exactly where the operator moves, compares or selects, up to rounding where it computes.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Tensor
from miscompile.graph.equality import difference
from miscompile.graph.model import Function, Model, Node, TensorType, ValueType
from miscompile.graph.prune import callee_key, function_key
from miscompile.graph.randomness import MAY_DRAW
from miscompile.graph.rename import NameSupply
from miscompile.transforms.exact.bodies import body_of, has_body
from miscompile.transforms.exact.inline import inlined
from miscompile.transforms.exact.placed import Placed
from miscompile.transforms.exact.scopes import NodeScope, rewrite, scopes, types_by_scope
from miscompile.transforms.exact.wrap_kinds import PLAIN
from miscompile.transforms.functions.compose import importing, own_domain

EXACT = frozenset({
    "CastLike", "CenterCropPad", "DepthToSpace", "GreaterOrEqual", "LessOrEqual", "SequenceMap", "SpaceToDepth",
})  # fmt: skip
"""Operators whose bodies move, convert and compare elements: bit-exact for all operands."""

EXACT_IN_INTEGERS = frozenset({"Clip", "PRelu", "Range"})
"""Those whose bodies give the same integers. For floats, the sign of a zero or the last bit of a sum may differ."""

_INTEGERS = ("int32", "int64")
"""Integers for which the operators of these bodies have kernels everywhere."""

_IR_FUNCTIONS = 8

_SHORT = 1 << 12
"""A number of which this many times is a whole number was not rounded to float32."""

ExpansionExactness = Literal["exact", "rounding"]


@dataclass(frozen=True, slots=True)
class Expand(Placed):
    """Replaces operators by their function bodies. Places are nodes, in bodies too.

    With `exact` only operators whose bodies give the same bits are replaced; without, also those that are equivalent up
    to rounding. `kept` puts the bodies in model-local functions, shared by the nodes that can call the same one.
    """

    stream_name: ClassVar[str] = "Expand"

    exact: bool = True
    kept: bool = False

    def places(self, model: Model) -> tuple[str, ...]:
        """Return the nodes that have an equivalent body."""
        return self._places(model, types_by_scope(model))

    def _places(self, model: Model, types: Mapping[str, Mapping[str, ValueType]]) -> tuple[str, ...]:
        found = []
        for scope in scopes(model):
            known = types.get(scope.path, {})
            found += [scope.place_of(node) for node in scope.nodes if self._body(node, scope, known, model)]
        return tuple(found)

    def apply(self, model: Model) -> Model:
        """Return `model` with operators replaced. Raises RejectedDraft when none has an equivalent body."""
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
        if scope.in_function or callee_key(node) in map(function_key, model.functions):
            return None
        if self.kept and not all(_common(types.get(name)) for name in (*node.inputs, *node.outputs) if name):
            return None
        if not _faithful(node) or (self.exact and not _exact(node, types)):
            return None
        try:
            body = body_of(node, scope.opset, types)
        except RejectedDraft:
            return None
        return None if _is_double(types.get(node.outputs[0])) and _rounds_numbers(body[0].nodes) else body


def _exact(node: Node, types: Mapping[str, ValueType]) -> bool:
    """Tell whether the body of `node` gives the same bits."""
    if node.op in EXACT:
        return True
    known = types.get(node.outputs[0])
    return node.op in EXACT_IN_INTEGERS and isinstance(known, TensorType) and known.dtype in _INTEGERS


def _common(kind: ValueType | None) -> bool:
    """Tell whether every runtime supports functions on this type; some lack small floats."""
    return not isinstance(kind, TensorType) or kind.dtype in PLAIN


def _faithful(node: Node) -> bool:
    """Tell whether the body of `node` agrees with the operator's page.

    Clip without a bound clips to the limits of its type, which excludes infinity; the body does not clip. For masked
    scores, implementations of Attention return either the lowest number or minus infinity.
    """
    if node.op == "Clip":
        return len(node.inputs) == 3 and all(node.inputs)
    return node.op != "Attention" or len(node.outputs) < 4 or not node.outputs[3]


def _is_double(kind: ValueType | None) -> bool:
    return isinstance(kind, TensorType) and kind.dtype == "float64"


def _rounds_numbers(nodes: Iterable[Node]) -> bool:
    """Tell whether nodes state a number that float32 has rounded, as HardSwish's 1/6 (https://onnx.ai/onnx/operators).

    A kernel for float64 may use the number of the page, so its results differ from the body's in the eighth digit.
    """
    stated = [attribute.value for node in nodes for attribute in node.attributes.values()]
    numbers = [value for value in stated if isinstance(value, float)]
    for value in stated:
        if isinstance(value, Tensor) and value.dtype == "float32":
            numbers += value.array.ravel().tolist()
    return any(math.isfinite(number) and not (number * _SHORT).is_integer() for number in numbers)


def _shared(function: Function, made: list[Function], names: NameSupply) -> Function:
    """Return an equivalent function among `made`, or else `function` under a new name."""
    for other in made:
        if difference(replace(function, name=other.name), other) is None:
            return other
    made.append(replace(function, name=names.fresh(f"{function.name}_body")))
    return made[-1]
