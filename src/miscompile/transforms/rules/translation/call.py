"""Shared parts of readers and writers: a node with its types and constants, and constructors of attributes."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from miscompile.core.tensor import Tensor
from miscompile.graph.attributes import PlainValue
from miscompile.graph.model import Attribute, Node
from miscompile.transforms.rules.kinds import Parameters, TermType

ReadTerm = tuple[tuple[Hashable, ...], tuple[str, ...]] | None
"""Parameters and children of a term; None where the node is opaque."""


@dataclass(frozen=True, slots=True)
class TypedNode:
    """A node, with the types of its operands and the operands that are constants."""

    node: Node
    types: Mapping[str, TermType]
    constants: Mapping[str, Tensor]

    def shape(self, place: int) -> tuple[int, ...] | None:
        """Return the sizes of an operand, or None when they are unknown or the operand is omitted."""
        inputs = self.node.inputs
        known = self.types.get(inputs[place]) if place < len(inputs) else None
        return None if known is None else known.shape

    def only(self, *names: str) -> bool:
        """Tell whether the node has no attributes other than `names`, and no references."""
        return all(name in names and value.kind != "ref" for name, value in self.node.attributes.items())

    def given(self, name: str, default: Any) -> Any:  # noqa: ANN401 - an attribute's value
        """Return an attribute's value, or `default`; floats rounded to float32, as ONNX stores them."""
        found = self.node.attributes.get(name)
        value = default if found is None else found.value
        return float(np.float32(value)) if isinstance(value, float) else value

    def present(self, place: int) -> bool:
        """Tell whether an operand is there."""
        return place < len(self.node.inputs) and bool(self.node.inputs[place])

    def known(self, place: int) -> Tensor | None:
        """Return the value of a constant operand, or None."""
        return self.constants.get(self.node.inputs[place]) if self.present(place) else None

    def known_integers(self, place: int) -> tuple[int, ...] | None:
        """Return the elements of a known operand of rank 1, or None."""
        value = self.known(place)
        return tuple(value.array.tolist()) if value is not None and value.array.ndim == 1 else None

    def axes(self, place: int, name: str, rank: int) -> tuple[int, ...] | None:
        """Return canonical axes from an operand or, in the opsets before it, an attribute; None when not known."""
        raw = self.known_integers(place) if self.present(place) else self.given(name, None)
        if raw is None:
            return None
        found = {axis + rank if axis < 0 else axis for axis in raw}
        return tuple(sorted(found)) if len(found) == len(raw) else None

    def children(self, least: int, most: int) -> tuple[str, ...] | None:
        """Return the operands, when there are from `least` to `most` and none of them is omitted."""
        inputs = self.node.inputs
        while inputs and not inputs[-1]:
            inputs = inputs[:-1]
        return inputs if least <= len(inputs) <= most and all(inputs) else None


NodeReader = Callable[[TypedNode], ReadTerm]
Structural: TypeAlias = tuple[tuple[str, Tensor | tuple[int, ...]], ...]
"""Operands that are constants: a hint for their names, and tensors or the elements of an int64 tensor of rank 1."""

WrittenNode = tuple[dict[str, PlainValue | None], Structural]
NodeWriter = Callable[[Parameters, int], WrittenNode]


def positive(axis: int, rank: int) -> int:
    """Return `axis` counted from the front."""
    return axis + rank if axis < 0 else axis


def integers(values: Sequence[int]) -> Tensor:
    """Return an int64 tensor of rank 1."""
    return Tensor("int64", np.array(values, np.int64))


def plural(values: Sequence[int]) -> Attribute:
    """Return an attribute of integers, also for an empty list."""
    return Attribute("ints", tuple(values))
