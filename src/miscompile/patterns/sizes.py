"""Generalisation of sizes: the numbers of a fragment that can change together, found by trial.

The sizes of holes and weights are changed to numbers that occur nowhere. Where the operators reject that, a minimal set
of other places with the same number is searched that must change with them: sizes of other operands, elements of small
constants (the shape for a Reshape), attributes (the groups of a Conv). A size that cannot change stays a number.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, islice
from typing import NamedTuple

import numpy as np

from miscompile.core.tensor import Tensor
from miscompile.graph.model import Attribute, TensorType
from miscompile.patterns.fragment import SHOWN, Fragment, FragmentSetting, KnownValue, kept

_PRIMES = (31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109, 113, 127, 131, 137, 139)
_SMALL = (5, 4, 3, 6, 2)
"""Sizes tried for names."""

_SERVING = 3
"""Number of these sizes that must be valid; otherwise a name would allow too much."""

_MOST_PAIRED = 12
"""Greatest number of places of which pairs and triples are tried; dependent places mostly come in pairs."""

_DRAWS = 24
"""Attempts to draw small sizes for all names together before a name is dropped."""


class SizePlace(NamedTuple):
    """The place of a number: an axis of a hole or constant, an element of a constant, or an attribute.

    `owner` is the value's name, "" for attributes, which have a `node` and a name; `at` is -1 for a single number.
    """

    owner: str
    at: int
    element: bool = False
    node: int = -1
    attribute: str = ""


class FragmentSizes:
    """The places of a fragment, and its evaluation with other numbers in them."""

    def __init__(self, fragment: Fragment, setting: FragmentSetting, base: Mapping[str, KnownValue]) -> None:
        """Store a setting that the fragment accepts, and its evaluation."""
        self._fragment, self._setting, self._base = fragment, setting, base
        self.axes = {
            SizePlace(name, axis): size
            for name, known in setting.given.items()
            if known.value is None
            for axis, size in enumerate(known.shape)
            if size > 1
        }
        self.others = {**self._elements(), **self._numbers()}
        occurring = {*self.axes.values(), *self.others.values()}
        self._primes = [prime for prime in _PRIMES if prime not in occurring]

    def names(self) -> dict[SizePlace, str]:
        """Return the places whose numbers can change, with a name for those that must change together."""
        groups = self._together(list(self._groups()))
        return {place: f"N{number}" for number, group in enumerate(groups, 1) for place in group}

    def _groups(self) -> Iterator[tuple[SizePlace, ...]]:
        """Yield the smallest sets of places found that can change together, each place at most once."""
        for size in dict.fromkeys(self.axes.values()):
            axes = [place for place, number in self.axes.items() if number == size]
            others = [place for place, number in self.others.items() if number == size]
            while axes:
                first = axes.pop(0)
                group = self._group(first, axes, others, size)
                axes = [place for place in axes if place not in group]
                others = [place for place in others if place not in group]
                if group:
                    yield group

    def _group(
        self, first: SizePlace, axes: Sequence[SizePlace], others: Sequence[SizePlace], size: int
    ) -> tuple[SizePlace, ...]:
        """Return a minimal set with `first` that can change; empty when there is none."""
        for candidate in self._candidates(first, axes, others):
            if not self._free(candidate, size):
                continue
            group = list(candidate)
            for place in reversed(candidate[1:]):
                rest = [other for other in group if other != place]
                if self._free(rest, size):
                    group = rest
            return tuple(group)
        return ()

    @staticmethod
    def _candidates(
        first: SizePlace, axes: Sequence[SizePlace], others: Sequence[SizePlace]
    ) -> Iterator[tuple[SizePlace, ...]]:
        rest = (*axes, *others)
        few = len(rest) <= _MOST_PAIRED
        yield (first,)
        if few:
            yield from ((first, other) for other in rest)
        if len(axes) > 1:
            yield (first, *axes)
        if others:
            yield (first, *rest)
        if few:
            yield from ((first, *chosen) for chosen in combinations(rest, 2))

    def _free(self, places: Iterable[SizePlace], size: int) -> bool:
        """Tell whether these places accept a number that occurs nowhere else, and most of the small sizes."""
        chosen = tuple(places)
        if not self._primes or not self.holds(dict.fromkeys(chosen, self._primes[0])):
            return False
        serving = (small for small in _SMALL if small == size or self.holds(dict.fromkeys(chosen, small)))
        return len(tuple(islice(serving, _SERVING))) == _SERVING

    def _together(self, groups: list[tuple[SizePlace, ...]]) -> list[tuple[SizePlace, ...]]:
        """Return the groups that can change at the same time, to different and to small numbers."""
        found: list[tuple[SizePlace, ...]] = []
        for group in groups[: len(self._primes)]:
            if self.holds(_numbers([*found, group], self._primes)):
                found.append(group)
        rng = random.Random(0)
        while found and not any(self.holds(_numbers(found, rng.choices(_SMALL, k=len(found)))) for _ in range(_DRAWS)):
            found.pop()
        return found

    def holds(self, numbers: Mapping[SizePlace, int]) -> bool:
        """Tell whether the fragment accepts these numbers, with results of the same ranks and dtypes."""
        known = self._fragment.run(self.changed(numbers), self._base)
        return known is not None and all(
            one is self._base[name]
            or (one.type.dtype == self._base[name].type.dtype and len(one.shape) == len(self._base[name].shape))
            for name, one in known.items()
        )

    def changed(self, numbers: Mapping[SizePlace, int]) -> FragmentSetting:
        """Return the setting with other numbers in some places."""
        given = dict(self._setting.given)
        attributes = list(self._setting.attributes)
        for place, number in numbers.items():
            if place.attribute:
                attributes[place.node] = _renumbered(attributes[place.node], place, number)
                continue
            known = given[place.owner]
            if place.element:
                assert known.value is not None, "only kept constants have places for elements"
                array = known.value.array.copy()
                array.reshape(-1)[place.at] = number
                given[place.owner] = kept(Tensor(known.value.dtype, array))
            else:
                shape = (*known.shape[: place.at], number, *known.shape[place.at + 1 :])
                given[place.owner] = replace(known, type=TensorType(known.type.dtype, shape))
        return FragmentSetting(given, tuple(attributes))

    def _elements(self) -> dict[SizePlace, int]:
        """Return the elements of small int64 constants that can be sizes."""
        found: dict[SizePlace, int] = {}
        for name, known in self._setting.given.items():
            value = known.value
            if value is not None and value.dtype == "int64" and value.array.size <= SHOWN:
                for index, number in enumerate(np.ravel(value.array).tolist()):
                    if number > 1:
                        found[SizePlace(name, index, element=True)] = number
        return found

    def _numbers(self) -> dict[SizePlace, int]:
        """Return the numbers in attributes that can be sizes."""
        found: dict[SizePlace, int] = {}
        for node, attributes in enumerate(self._setting.attributes):
            for name, given in attributes.items():
                if given.kind == "int" and given.value > 1:
                    found[SizePlace("", -1, node=node, attribute=name)] = given.value
                elif given.kind == "ints":
                    for index, number in enumerate(given.value):
                        if number > 1:
                            found[SizePlace("", index, node=node, attribute=name)] = number
        return found


def _numbers(groups: Sequence[tuple[SizePlace, ...]], numbers: Sequence[int]) -> dict[SizePlace, int]:
    return {place: number for group, number in zip(groups, numbers, strict=False) for place in group}


def _renumbered(attributes: Mapping[str, Attribute], place: SizePlace, number: int) -> dict[str, Attribute]:
    given = attributes[place.attribute]
    value = number if place.at < 0 else (*given.value[: place.at], number, *given.value[place.at + 1 :])
    return {**attributes, place.attribute: Attribute(given.kind, value)}
