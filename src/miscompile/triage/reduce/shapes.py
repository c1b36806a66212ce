"""Smaller sizes and lower ranks, consistent over the graph: leaves are changed, everything else is inferred anew.

A reduction guesses which sizes depend on each other (equal sizes, equal axes), and inference checks the guess, because
that costs microseconds and needs no model of each operator.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np

from miscompile.core.tensor import Tensor
from miscompile.graph.axes import without_first_axis, without_window_axis
from miscompile.graph.edges import map_bodies
from miscompile.graph.model import Node
from miscompile.graph.sizes import retargeted
from miscompile.triage.reduce.draft import Draft
from miscompile.triage.reduce.leaves import Change, Leaf, all_leaves, changed, structural

_MOST_PAIRS = 400

_WINDOWED = 3
"""The least rank of an operand with a window: the first two axes have none."""

Places = set[tuple[str, int]]
"""Dimensions of leaves: name and axis."""


@dataclass(frozen=True, slots=True)
class SmallerSizes:
    """Cuts sizes to 1, to 2, in half, or by less: wherever a size occurs, at equal axes, leaf by leaf and in pairs."""

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts with smaller leaves."""
        found = all_leaves(draft)
        fixed = structural(draft)
        dims = [(leaf.name, axis, size) for leaf in found for axis, size in enumerate(leaf.value.shape)]
        ranks = {leaf.name: len(leaf.value.shape) for leaf in found}
        yield from _halved(draft, found, fixed)
        yield from _in_proportion(draft, dims, fixed)
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
        yield from _retargeted_alone(draft, found, fixed)


@dataclass(frozen=True, slots=True)
class LowerRanks:
    """Removes axes: the first or last one of every leaf of the highest rank (attributes follow), then of each leaf;
    then inner axes of size 1."""

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts with leaves of lower rank."""
        fixed = structural(draft)
        found = [leaf for leaf in all_leaves(draft) if leaf.name not in fixed and leaf.value.shape]
        for rank in sorted({len(leaf.value.shape) for leaf in found}, reverse=True):
            names = {leaf.name for leaf in found if len(leaf.value.shape) == rank}
            lower = changed(draft, names, _first)
            yield _with_nodes(lower, without_first_axis)
            yield lower
            yield changed(draft, names, _last)
            yield from _narrower(draft, names, rank)
        yield _with_nodes(changed(draft, {leaf.name for leaf in found}, _first), without_first_axis)
        for leaf in found:
            yield changed(draft, {leaf.name}, _first)
            yield changed(draft, {leaf.name}, _last)
            if leaf.value.array.size == 1 and all(one[leaf.name].array.size == 1 for one in draft.feeds if leaf.fed):
                yield changed(draft, {leaf.name}, lambda _, value: Tensor(value.dtype, value.array.reshape(())))


@dataclass(frozen=True, slots=True)
class FlatterLeaves:
    """Gives all elements of leaves to one axis, for bugs that only need their number. After all other reductions of
    shapes, because a single axis ties the sizes together."""

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts whose leaves have one axis: all leaves, then one."""
        fixed = structural(draft)
        deep = sorted({one.name for one in all_leaves(draft) if one.name not in fixed and len(one.value.shape) > 1})
        for names in ({*deep}, *({name} for name in deep)) if deep else ():
            yield changed(draft, names, lambda _, value: Tensor(value.dtype, value.array.reshape(-1)))


def _narrower(draft: Draft, names: set[str], rank: int) -> Iterator[Draft]:
    """Remove the last axis of the leaves, or the first that windows have, and that of windows; then inner axes."""
    if rank > _WINDOWED:
        yield _with_nodes(changed(draft, names, _one_of(-1)), partial(without_window_axis, last=True))
        yield _with_nodes(changed(draft, names, _one_of(_WINDOWED - 1)), partial(without_window_axis, last=False))
    for axis in range(1, rank - 1):
        yield changed(draft, names, _without_axis(axis))


def _one_of(axis: int) -> Change:
    """Keep the first elements along `axis`, without that axis."""

    def change(_: str, value: Tensor) -> Tensor:
        return Tensor(value.dtype, value.array.take(0, axis) if value.array.shape[axis] else value.array)

    return change


def _without_axis(axis: int) -> Change:
    def change(_: str, value: Tensor) -> Tensor:
        return Tensor(value.dtype, value.array.squeeze(axis) if value.array.shape[axis] == 1 else value.array)

    return change


def _goals(size: int) -> list[int]:
    """Return the sizes to try in place of `size`: 1, 2, and `size` without a half, a quarter, an eighth, ... of it.

    A bug may need a minimum of elements, which the smaller parts approach.
    """
    parts = (size >> shift for shift in range(1, size.bit_length()))
    return [goal for goal in dict.fromkeys((1, 2, *(size - part for part in parts))) if goal < size]


def _by_axis(same: Places, ranks: Mapping[str, int]) -> list[Places]:
    """Group equal sizes by their axis counted from the front, and from the back; groups of one come later anyway."""
    groups: dict[tuple[str, int], Places] = {}
    for name, axis in sorted(same):
        groups.setdefault(("front", axis), set()).add((name, axis))
        groups.setdefault(("back", ranks[name] - axis), set()).add((name, axis))
    return [group for group in groups.values() if 1 < len(group) < len(same)]


def _in_proportion(draft: Draft, dims: list[tuple[str, int, int]], fixed: set[str]) -> Iterator[Draft]:
    """Cut two sizes in about the same ratio, such as those of elements and of the scales of their blocks."""
    sizes = sorted({size for name, _, size in dims if size > 1 and name not in fixed}, reverse=True)
    for large, small in list(combinations(sizes, 2))[:_MOST_PAIRS]:
        for goal in _goals(small):
            smaller = draft
            for size, cut in ((large, max(1, large * goal // small)), (small, goal)):
                places = {(name, axis) for name, axis, other in dims if other == size and name not in fixed}
                smaller = _resized(smaller, places, size, cut, fixed, scale=False)
            yield smaller


def _halved(draft: Draft, found: list[Leaf], fixed: set[str]) -> Iterator[Draft]:
    """Halve every even size at once, for sizes that must keep a ratio, such as those of blocks and of their scales."""

    def change(name: str, value: Tensor) -> Tensor:
        if name in fixed:
            even = (value.array > 1) & (value.array % 2 == 0) if value.dtype == "int64" else None
            return value if even is None else Tensor("int64", np.where(even, value.array // 2, value.array))
        array = value.array
        for axis, size in enumerate(array.shape):
            if size > 1 and size % 2 == 0:
                array = array.take(range(size // 2), axis=axis)
        return Tensor(value.dtype, array)

    names = {leaf.name for leaf in found if any(size > 1 and size % 2 == 0 for size in leaf.value.shape)}
    if names - fixed:
        yield changed(draft, names | {leaf.name for leaf in found if leaf.name in fixed}, change)


def _retargeted_alone(draft: Draft, found: list[Leaf], fixed: set[str]) -> Iterator[Draft]:
    """Shorten shape operands, and make their elements smaller: of sizes that no leaf has, as the target of Expand."""
    for leaf in found:
        if leaf.name not in fixed or leaf.value.dtype != "int64" or leaf.value.array.ndim != 1:
            continue
        count = leaf.value.array.size
        for kept in (slice(1, None), slice(None, -1)) if count > 1 else ():
            yield changed(draft, {leaf.name}, _part(kept))
        for place in range(count):
            for goal in _goals(int(leaf.value.array[place])) if leaf.value.array[place] > 1 else ():
                yield changed(draft, {leaf.name}, _with_element(place, goal))


def _part(kept: slice) -> Change:
    return lambda _, value: Tensor(value.dtype, value.array[kept])


def _with_element(place: int, goal: int) -> Change:
    def change(_: str, value: Tensor) -> Tensor:
        array = value.array.copy()
        array[place] = goal
        return Tensor(value.dtype, array)

    return change


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

    known = {leaf.name for leaf in all_leaves(draft)}
    return changed(draft, {name for name, _ in places} | (fixed & known), change)


def _first(_: str, value: Tensor) -> Tensor:
    return Tensor(value.dtype, np.asarray(value.array[0]) if value.array.ndim and len(value.array) else value.array)


def _last(_: str, value: Tensor) -> Tensor:
    return Tensor(value.dtype, np.asarray(value.array[-1]) if value.array.ndim and len(value.array) else value.array)


def _with_nodes(draft: Draft, change: Callable[[Node], Node]) -> Draft:
    """Return the draft with `change` of every node, those of bodies included."""

    def everywhere(node: Node) -> Node:
        return map_bodies(change(node), lambda body: replace(body, nodes=tuple(map(everywhere, body.nodes))))

    return draft.with_nodes(map(everywhere, draft.graph.nodes))
