"""Smaller sizes and lower ranks, consistent over the graph: leaves are changed, everything else is inferred anew.

A reduction guesses which sizes depend on each other (equal sizes, equal axes), and inference checks the guess, because
that costs microseconds and needs no model of each operator.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from miscompile.core.tensor import Tensor
from miscompile.graph.model import Attribute, Node
from miscompile.triage.reduce.draft import Draft
from miscompile.triage.reduce.leaves import changed, leaves, structural

_MOST_PAIRS = 400

Places = set[tuple[str, int]]
"""Dimensions of leaves: name and axis."""


@dataclass(frozen=True, slots=True)
class SmallerSizes:
    """Cuts sizes to 1, to 2, or in half: wherever the size occurs, at equal axes, then leaf by leaf and in pairs."""

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts with smaller leaves."""
        found = leaves(draft)
        fixed = structural(draft)
        dims = [(leaf.name, axis, size) for leaf in found for axis, size in enumerate(leaf.value.shape)]
        ranks = {leaf.name: len(leaf.value.shape) for leaf in found}
        for size in sorted({size for _, _, size in dims if size > 1}, reverse=True):
            same: Places = {(name, axis) for name, axis, other in dims if other == size and name not in fixed}
            for goal in _goals(size):
                yield _resized(draft, same, size, goal, fixed, scale=False)
                yield _resized(draft, same, size, goal, fixed, scale=True)
            for group in _by_axis(same, ranks):
                for goal in _goals(size):
                    yield _resized(draft, group, size, goal, fixed, scale=False)
            if same:
                for goal in _goals(size):
                    yield _resized(draft, same, size, goal, fixed, scale=False, tail=True)
            for place in sorted(same):
                for goal in _goals(size):
                    yield _resized(draft, {place}, size, goal, set(), scale=False)
                    yield _resized(draft, {place}, size, goal, set(), scale=False, tail=True)
            for pair in list(combinations(sorted(same), 2))[:_MOST_PAIRS]:
                for goal in _goals(size):
                    yield _resized(draft, set(pair), size, goal, set(), scale=False)


@dataclass(frozen=True, slots=True)
class LowerRanks:
    """Removes the leading axis: of every leaf of the highest rank (axis attributes follow), then of each leaf."""

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts with leaves of lower rank."""
        fixed = structural(draft)
        found = [leaf for leaf in leaves(draft) if leaf.name not in fixed and leaf.value.shape]
        for rank in sorted({len(leaf.value.shape) for leaf in found}, reverse=True):
            names = {leaf.name for leaf in found if len(leaf.value.shape) == rank}
            lower = changed(draft, names, _first)
            yield lower.with_nodes(_shifted(node) for node in lower.graph.nodes)
            yield lower
            yield changed(draft, names, _last)
        everywhere = changed(draft, {leaf.name for leaf in found}, _first)
        yield everywhere.with_nodes(_shifted(node) for node in everywhere.graph.nodes)
        for leaf in found:
            yield changed(draft, {leaf.name}, _first)
            yield changed(draft, {leaf.name}, _last)
            if leaf.value.array.size == 1:
                yield changed(draft, {leaf.name}, lambda _, value: Tensor(value.dtype, value.array.reshape(())))


def _goals(size: int) -> list[int]:
    return [goal for goal in dict.fromkeys((1, 2, size // 2)) if goal < size]


def _by_axis(same: Places, ranks: dict[str, int]) -> list[Places]:
    """Group equal sizes by their axis counted from the front, and from the back; groups of one come later anyway."""
    groups: dict[tuple[str, int], Places] = {}
    for name, axis in sorted(same):
        groups.setdefault(("front", axis), set()).add((name, axis))
        groups.setdefault(("back", ranks[name] - axis), set()).add((name, axis))
    return [group for group in groups.values() if 1 < len(group) < len(same)]


def _resized(
    draft: Draft, places: Places, size: int, goal: int, fixed: set[str], *, scale: bool, tail: bool = False
) -> Draft:
    """Cut the dimensions in `places` to `goal`; shape operands follow: `size` itself, multiples of it if `scale`.

    The first elements stay, or with `tail` the last ones, for bugs that show in some elements only.
    """

    def change(name: str, value: Tensor) -> Tensor:
        if name in fixed:
            return retargeted(value, size, goal, scale=scale)
        array = value.array
        for axis in range(array.ndim):
            if (name, axis) in places:
                array = array.take(range(size - goal, size) if tail else range(goal), axis=axis)
        return Tensor(value.dtype, array)

    known = {leaf.name for leaf in leaves(draft)}
    return changed(draft, {name for name, _ in places} | (fixed & known), change)


def retargeted(value: Tensor, size: int, goal: int, *, scale: bool) -> Tensor:
    """Return a shape operand with `goal` in place of `size`, and with `scale` its multiples in place of those of
    `size`."""
    if value.dtype != "int64":
        return value
    array = np.where(value.array == size, goal, value.array)
    if scale:
        multiple = (value.array > 0) & (value.array % size == 0)
        array = np.where(multiple, value.array // size * goal, value.array)
    return Tensor(value.dtype, array.astype(np.int64))


def _first(_: str, value: Tensor) -> Tensor:
    return Tensor(value.dtype, np.asarray(value.array[0]) if value.array.ndim and len(value.array) else value.array)


def _last(_: str, value: Tensor) -> Tensor:
    return Tensor(value.dtype, np.asarray(value.array[-1]) if value.array.ndim and len(value.array) else value.array)


def _shifted(node: Node) -> Node:
    """Reduce attributes that count axes from the front by one, because the leading axis is removed."""
    attributes = {name: _shifted_attribute(name, attribute) for name, attribute in node.attributes.items()}
    return replace(node, attributes=attributes) if attributes else node


def _shifted_attribute(name: str, attribute: Attribute) -> Attribute:
    if name == "axis" and attribute.kind == "int" and attribute.value > 0:
        return replace(attribute, value=attribute.value - 1)
    if name == "axes" and attribute.kind == "ints":
        return replace(attribute, value=tuple(axis - 1 if axis > 0 else axis for axis in attribute.value))
    if name == "perm" and attribute.kind == "ints" and attribute.value[:1] == (0,):
        return replace(attribute, value=tuple(axis - 1 for axis in attribute.value[1:]))
    return attribute
