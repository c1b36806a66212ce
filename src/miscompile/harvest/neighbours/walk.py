"""The walk from instances to their neighbours: which are tried, and which are kept.

The neighbours at one step come first, each kind of step in turn, so that every kind is tried. Then each kept neighbour
gets a second step of any kind, and if that is not enough, a third. Among the candidates, the one that has most pairs of
classes which no kept instance has is tried first, and one without any is not kept.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from miscompile.base.rng import stream
from miscompile.harvest.neighbours.attributes import attributes, descriptions
from miscompile.harvest.neighbours.call import (
    NamedParameters,
    Step,
    StepView,
    Subject,
    parameters_of,
    parent_of,
    rebuilt,
)
from miscompile.harvest.neighbours.classes import classes
from miscompile.harvest.neighbours.coverage import PairCoverage
from miscompile.harvest.neighbours.draws import draws
from miscompile.harvest.neighbours.element_types import element_types
from miscompile.harvest.neighbours.operands import aliases, operands
from miscompile.harvest.neighbours.presence import outputs, presence
from miscompile.harvest.neighbours.shapes import ranks, sizes
from miscompile.harvest.neighbours.specification import specification
from miscompile.instances.classes import ClassPair, pairs_of
from miscompile.instances.code import digest_of
from miscompile.instances.instance import Instance, Parent

STEPS: Mapping[str, Step] = {
    "presence": presence,
    "attributes": attributes,
    "descriptions": descriptions,
    "types": element_types,
    "ranks": ranks,
    "sizes": sizes,
    "values": draws,
    "operands": operands,
    "aliases": aliases,
    "outputs": outputs,
    "specification": specification,
}

SOURCE = "neighbours"
"""The source of these instances."""

Refusal = Callable[[Instance], str]
"""Why the library refuses an instance, in a few words; empty when it runs it."""

_BASES = 6
_LARGEST = 1 << 12
"""Greatest number of elements of an instance from which neighbours are made."""
_TRIES = 6
"""Tried neighbours for each that may be kept."""
_FURTHER = 2
"""Steps after the first."""
_TRIED_OF_BASE = 4
"""Tried neighbours of a neighbour for each that is wanted of it."""


@dataclass(frozen=True)
class Neighbour:
    """A neighbour that may be tried; `words` says how it differs from the test's instance `base`."""

    subject: Subject
    base: Instance
    values: NamedParameters
    words: tuple[str, ...]
    parent: Parent

    @cached_property
    def instance(self) -> Instance:
        """The neighbour, whose origin names the difference and the test."""
        made = rebuilt(self.subject, self.base, self.values)
        origin = f"{' and '.join(self.words)}; from {self.base.origin or 'a test'}"
        return replace(made, source=SOURCE, origin=origin, parent=self.parent)

    @cached_property
    def classes(self) -> Mapping[str, str]:
        """The class of each factor."""
        return classes(scene_of(self.subject, self.values))

    @cached_property
    def pairs(self) -> frozenset[ClassPair]:
        """The pairs of its classes."""
        return pairs_of(self.classes)


def scene_of(
    subject: Subject, values: NamedParameters, siblings: tuple[NamedParameters, ...] = (), seed: int = 0
) -> StepView:
    """Return the view of an instance's parameters that a step gets."""
    return StepView(subject, values, siblings, stream(seed, subject.operation.api))


def neighbours(
    subject: Subject, tests: Sequence[Instance], seed: int, limit: int, refusal: Refusal, coverage: PairCoverage
) -> Iterator[Instance]:
    """Yield at most `limit` neighbours of the instances in `tests` that the library runs, and count all in `coverage`.

    The same arguments yield the same neighbours.
    """
    named = [(one, values) for one in tests if (values := parameters_of(subject, one)) is not None]
    walk = _Walk(subject, named, seed, limit, refusal, coverage)
    yield from walk.single()
    yield from walk.further()


class _Walk:
    """The state of a walk around one operator."""

    def __init__(
        self,
        subject: Subject,
        tests: Sequence[tuple[Instance, NamedParameters]],
        seed: int,
        limit: int,
        refusal: Refusal,
        coverage: PairCoverage,
    ) -> None:
        self._subject, self._limit, self._refusal, self._coverage = subject, limit, refusal, coverage
        self._seed, self._draw = seed, stream(seed, subject.operation.api, "walk")
        small = [pair for pair in tests if pair[0].elements() <= _LARGEST]
        self._siblings = tuple(values for _, values in tests[:64])
        self._bases = self._chosen(small)
        self._kept: list[Neighbour] = []
        self._met = {digest_of(one) for one, _ in tests}
        chosen = {digest_of(base.base) for base in self._bases}
        for one, values in tests:
            found, digest = classes(scene_of(subject, values)), digest_of(one)
            coverage.classes[digest] = found
            if digest not in chosen:
                coverage.test(pairs_of(found))

    def _chosen(self, tests: Sequence[tuple[Instance, NamedParameters]]) -> list[Neighbour]:
        """Return the few instances that cover most pairs together, and count them as tests."""
        subject = self._subject
        left = [Neighbour(subject, one, values, (), parent_of(subject, one, values)) for one, values in tests]
        found: list[Neighbour] = []
        while left and len(found) < _BASES:
            best = max(left, key=lambda one: self._coverage.gain(one.pairs))
            if found and not self._coverage.gain(best.pairs):
                break
            self._coverage.test(best.pairs)
            left.remove(best)
            found.append(best)
        return found

    def single(self) -> Iterator[Instance]:
        """Yield neighbours at one step."""
        queues = []
        for step in STEPS.values():
            made = [one for base in self._bases for one in self._after(base, step)]
            queues.append(_queue(made, self._coverage))
        share = max(1, self._limit * 2 // 3)
        while any(queues) and self._coverage.kept < share and not self._spent(share):
            for queue in queues:
                found = self._next(queue) if self._coverage.kept < share else None
                if found is not None:
                    yield found

    def further(self) -> Iterator[Instance]:
        """Yield neighbours of kept neighbours, a few of each, and then of those."""
        for _ in range(_FURTHER):
            bases, self._kept = self._kept, []
            if not bases or self._coverage.kept >= self._limit:
                return
            self._draw.shuffle(bases)
            most = max(1, (self._limit - self._coverage.kept) // len(bases))
            for base in bases:
                queue = _queue((one for step in STEPS.values() for one in self._after(base, step)), self._coverage)
                yield from self._some(queue, most)
                if self._coverage.kept >= self._limit or self._spent(self._limit):
                    return

    def _some(self, queue: "list[_Ranked]", most: int) -> Iterator[Instance]:
        """Yield the best of a queue, until so many are found or four times as many were tried."""
        tried, found = self._coverage.tried, 0
        while queue and found < most and self._coverage.kept < self._limit:
            if self._coverage.tried - tried >= _TRIED_OF_BASE * most:
                return
            instance = self._next(queue)
            if instance is not None:
                found += 1
                yield instance

    def _spent(self, share: int) -> bool:
        return self._coverage.tried >= _TRIES * share

    def _after(self, base: Neighbour, step: Step) -> Iterator[Neighbour]:
        scene = scene_of(self._subject, base.values, self._siblings, self._seed)
        for change in step(scene):
            values = {**base.values, **change.values}
            yield Neighbour(self._subject, base.base, values, (*base.words, change.words), base.parent)

    def _next(self, queue: "list[_Ranked]") -> Instance | None:
        """Try the best candidate; return it if the library runs it."""
        candidate = _best(queue, self._coverage)
        if candidate is None:
            return None
        instance = candidate.instance
        digest = digest_of(instance)
        if digest in self._met:
            return None
        self._met.add(digest)
        reason = self._refusal(instance)
        if reason:
            self._coverage.refuse(candidate.pairs, reason)
            return None
        self._coverage.keep(candidate.pairs)
        self._coverage.classes[digest] = candidate.classes
        self._kept.append(candidate)
        return instance


_Ranked = tuple[int, int, Neighbour]
"""A candidate behind its negated gain when it was last looked at, and its number."""


def _queue(made: Iterable[Neighbour], coverage: PairCoverage) -> list[_Ranked]:
    found: list[_Ranked] = []
    for number, one in enumerate(made):
        coverage.drawn |= one.pairs
        gain = coverage.gain(one.pairs)
        if gain:
            found.append((-gain, number, one))
    heapq.heapify(found)
    return found


def _best(queue: list[_Ranked], coverage: PairCoverage) -> Neighbour | None:
    """Take the candidate with the greatest gain from the queue; None when none has any.

    Gains only fall, so a candidate whose gain is still at the top when computed anew is the best.
    """
    while queue:
        _, number, one = heapq.heappop(queue)
        gain = coverage.gain(one.pairs)
        if gain and (not queue or (-gain, number) <= queue[0][:2]):
            return one
        if gain:
            heapq.heappush(queue, (-gain, number, one))
    return None
