"""Leaves: the tensors that a draft starts from (fed inputs and initialisers), read and changed in one way."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from miscompile.core.case import Dim
from miscompile.core.tensor import Tensor
from miscompile.graph.model import TensorType, ValueInfo
from miscompile.ops.operand_roles import structural_operands
from miscompile.triage.reduce.draft import Draft, loosened

Change = Callable[[str, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Leaf:
    """One leaf; `value` is that of the first feed when it is an input."""

    name: str
    value: Tensor
    fed: bool


def leaves(draft: Draft) -> list[Leaf]:
    """Return the leaves, inputs first, in the order of the model."""
    first: Mapping[str, Tensor] = draft.feeds[0] if draft.feeds else {}
    found = [Leaf(info.name, first[info.name], True) for info in draft.fed() if info.name in first]
    return found + [Leaf(name, value, False) for name, value in draft.graph.initializers.items()]


def changed(draft: Draft, names: set[str], change: Change) -> Draft:
    """Return the draft with `change(name, value)` in place of the leaves in `names`, in every feed; types follow."""
    graph = draft.graph
    feeds = tuple(
        {name: change(name, value) if name in names else value for name, value in feed.items()} for feed in draft.feeds
    )
    constants = {name: change(name, value) if name in names else value for name, value in graph.initializers.items()}
    now = {**constants, **(feeds[0] if feeds else {})}
    inputs = tuple(_info(info, now[info.name]) if info.name in names & now.keys() else info for info in graph.inputs)
    model = replace(draft.model, graph=loosened(replace(graph, inputs=inputs, initializers=constants, types={})))
    return Draft(model, feeds)


def structural(draft: Draft) -> set[str]:
    """Return the names of leaves whose elements determine shapes (targets of Reshape, axes of reductions, pads)."""
    places = structural_operands("shape")
    return {
        name for node in draft.graph.nodes for place, name in enumerate(node.inputs) if place in places.get(node.op, ())
    }


def _info(info: ValueInfo, value: Tensor) -> ValueInfo:
    """Give an input the type of its value; a symbolic size stays symbolic, because the bug may depend on it."""
    declared = info.type.shape if isinstance(info.type, TensorType) else None
    shape: tuple[Dim, ...] = value.shape
    if declared is not None and len(declared) == len(shape):
        shape = tuple(size if isinstance(known, int) else known for known, size in zip(declared, shape, strict=True))
    return ValueInfo(info.name, TensorType(value.dtype, shape))
