"""Plainer element types, changed consistently over leaves, constants and type attributes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.edges import map_bodies
from miscompile.graph.model import Attribute, Node
from miscompile.triage.reduce.draft import Draft
from miscompile.triage.reduce.leaves import all_leaves, changed

_PLAINER = {
    "float64": ("float32",),
    "float16": ("float32",),
    "bfloat16": ("float32",),
    "int32": ("float32", "int64"),
    "int16": ("float32", "int64", "int32"),
    "int8": ("float32", "int64", "int32"),
    "uint8": ("float32", "int64", "int32"),
    "uint16": ("float32", "int64", "int32"),
    "uint32": ("float32", "int64", "int32"),
    "uint64": ("float32", "int64", "int32"),
    "int64": ("float32",),
    "bool": ("float32",),
}
_TYPE_ATTRIBUTES = ("to", "dtype", "saturate_dtype", "output_dtype")


@dataclass(frozen=True, slots=True)
class PlainerTypes:
    """Replaces one element type by a plainer one everywhere, then in one leaf alone."""

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts with plainer element types."""
        found = all_leaves(draft)
        for dtype in dict.fromkeys(leaf.value.dtype for leaf in found):
            names = {leaf.name for leaf in found if leaf.value.dtype == dtype}
            for goal in _PLAINER.get(dtype, ()):
                yield retyped_everywhere(draft, dtype, goal)
                if len(names) > 1:
                    for name in sorted(names):
                        yield retyped(draft, {name}, goal)


def retyped_everywhere(draft: Draft, dtype: str, goal: str) -> Draft:
    """Return the draft with `goal` in place of `dtype` in all leaves, constants and attributes that name a type."""
    everywhere = retyped(draft, {leaf.name for leaf in all_leaves(draft) if leaf.value.dtype == dtype}, goal)
    return everywhere.with_nodes(_retyped(node, dtype, goal) for node in everywhere.graph.nodes)


def retyped(draft: Draft, names: set[str], goal: str) -> Draft:
    """Return the draft with the leaves in `names` converted to the type `goal`."""
    return changed(draft, names, lambda _, value: _converted(value, goal))


def _converted(value: Tensor, goal: str) -> Tensor:
    """Convert; a number outside the new type's range becomes its nearest number (all goals but float32 are wider)."""
    numbers = value.numbers()
    if DTYPES[goal].kind == "float" and numbers.dtype.kind == "f":
        numbers = np.clip(numbers.astype(np.float64), DTYPES[goal].low, DTYPES[goal].high)
    return tensor(np.asarray(numbers), goal)


def _retyped(node: Node, dtype: str, goal: str) -> Node:
    attributes = {name: _attribute(name, value, dtype, goal) for name, value in node.attributes.items()}
    inner = replace(node, attributes=attributes) if attributes else node
    return map_bodies(
        inner, lambda body: replace(body, nodes=tuple(_retyped(item, dtype, goal) for item in body.nodes))
    )


def _attribute(name: str, attribute: Attribute, dtype: str, goal: str) -> Attribute:
    if name in _TYPE_ATTRIBUTES and attribute.kind == "int" and attribute.value == DTYPES[dtype].code:
        return replace(attribute, value=DTYPES[goal].code)
    if attribute.kind == "tensor" and attribute.value.dtype == dtype:
        return replace(attribute, value=_converted(attribute.value, goal))
    return attribute
