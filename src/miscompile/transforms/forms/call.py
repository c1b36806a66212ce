"""The only call of a program with its operands, as changes of it need it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from miscompile.base.errors import RejectedDraft
from miscompile.core.case import Feed
from miscompile.core.tensor import Tensor
from miscompile.graph.infer import infer
from miscompile.graph.model import Model, Node, TensorType, ValueInfo
from miscompile.ops.operand_roles import structural_operands
from miscompile.ops.registry import schema

_ROLES = ("shape", "size", "control", "quantisation", "setting", "domain")


@dataclass(frozen=True, slots=True)
class CallForm:
    """The only call of a model with its operands.

    `values` has a tensor for each feed, by the name of the operand; `fed` names the operands that are inputs.
    """

    model: Model
    node: Node
    values: Mapping[str, tuple[Tensor, ...]]
    fed: frozenset[str]

    @property
    def structural(self) -> frozenset[str]:
        """The operands that determine shapes or settings instead of being data."""
        places = structural_operands(*_ROLES).get(self.node.op, frozenset())
        return frozenset(name for place, name in enumerate(self.node.inputs) if place in places)

    @property
    def data(self) -> tuple[str, ...]:
        """The other operands, which have ranks and sizes of their own."""
        return tuple(name for name in self.values if name not in self.structural)

    def parameter(self, place: int) -> str:
        """Return the name of an operand on the operator's page."""
        form = schema(self.node.op, self.model.opset)
        formal = form.inputs[min(place, len(form.inputs) - 1)] if form is not None and form.inputs else None
        return formal.name if formal is not None else str(place)

    def with_values(self, change: Callable[[str, Tensor], Tensor]) -> "CallForm":
        """Return the call with other operands."""
        return replace(
            self, values={name: tuple([change(name, one) for one in held]) for name, held in self.values.items()}
        )


def call_form(model: Model, feeds: Sequence[Feed]) -> CallForm:
    """Return the call of a model. Raises RejectedDraft unless it has a single one, of plain tensors."""
    graph = model.graph
    if len(graph.nodes) != 1 or graph.nodes[0].domain or any(True for _ in graph.nodes[0].subgraphs()) or not feeds:
        raise RejectedDraft("only a program of one operator has other forms")
    names = [info.name for info in graph.inputs if info.name not in graph.initializers]
    columns = dict(zip(names, zip(*feeds, strict=True), strict=True))
    constants = {name: (value,) * len(feeds) for name, value in graph.initializers.items()}
    node, known = graph.nodes[0], {**constants, **columns}
    if not known.keys() >= set(filter(None, node.inputs)):
        raise RejectedDraft("an operand is no plain tensor")
    values = {name: known[name] for name in dict.fromkeys(node.inputs) if name}
    return CallForm(model, node, values, frozenset(values) & frozenset(names))


def program_of(call: CallForm) -> tuple[Model, tuple[Feed, ...]]:
    """Return the model of a call, and its feeds.

    Raises RejectedDraft or ModelError for a call whose results have no inferred types.
    """
    types = {name: TensorType(held[0].dtype, held[0].shape) for name, held in call.values.items()}
    if any(one.shape != held[0].shape for held in call.values.values() for one in held):
        raise RejectedDraft("feeds of different shapes")
    fed = [name for name in call.values if name in call.fed]
    constants = {name: held[0] for name, held in call.values.items() if name not in call.fed}
    found = infer(call.node, types, call.model.opset, constants)
    results = [(name, kind) for name, kind in zip(call.node.outputs, found, strict=True) if name]
    if not all(isinstance(kind, TensorType) for _, kind in results):
        raise RejectedDraft("a result without an inferred type")
    graph = replace(
        call.model.graph,
        inputs=tuple(ValueInfo(name, types[name]) for name in fed),
        outputs=tuple(ValueInfo(name, kind) for name, kind in results),
        nodes=(call.node,),
        initializers=constants,
        types={},
    )
    count = max(map(len, call.values.values()), default=1)
    feeds = tuple(tuple(call.values[name][turn] for name in fed) for turn in range(count))
    return replace(call.model, graph=graph), feeds
