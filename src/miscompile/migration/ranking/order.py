"""Orders of migrated tests by name: OPERA's own, each of its two scores alone, and a random one.

An order is a function from instances and facts to the places of the instances, first to last. It is a permutation, and
the same for the same facts and seed. Where an order does not tell two tests apart, the seed decides.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from miscompile.base.errors import UsageError
from miscompile.base.rng import stream
from miscompile.instances.instance import Instance
from miscompile.migration.ranking.score import OperatorKey, operator_of, settings_of, signature_scores


@dataclass(frozen=True, slots=True)
class RankingFacts:
    """The inputs of an order besides the instances.

    `counts` holds how often the compiler's own tests use an operator (`score.key_of`).
    """

    seed: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)


class Order(Protocol):
    """A function that ranks instances of one library."""

    def __call__(self, instances: Sequence[Instance], facts: RankingFacts) -> list[int]:
        """Return the places of `instances`, first to last."""
        ...


def shuffled(count: int, seed: int, *path: str | int) -> list[int]:
    """Return the numbers below `count` in an order that depends only on the seed and the path."""
    places = list(range(count))
    stream(seed, "order", *path).shuffle(places)
    return places


def opera(instances: Sequence[Instance], facts: RankingFacts) -> list[int]:
    """Rank by the product of the operator's score and the instance's own (section III-B3)."""
    return _diverse(instances, signature_scores(instances, facts.counts), facts.seed)


def parameters(instances: Sequence[Instance], facts: RankingFacts) -> list[int]:
    """Rank by the diversity of parameters alone: all operators have the same score."""
    return _diverse(instances, {operator_of(instance): 1.0 for instance in instances}, facts.seed)


def operators(instances: Sequence[Instance], facts: RankingFacts) -> list[int]:
    """Rank by the operator's score alone: all instances of one operator have the same."""
    scores = signature_scores(instances, facts.counts)
    return sorted(
        shuffled(len(instances), facts.seed, "operators"), key=lambda place: -scores[operator_of(instances[place])]
    )


def at_random(instances: Sequence[Instance], facts: RankingFacts) -> list[int]:
    """Shuffle."""
    return shuffled(len(instances), facts.seed, "random")


ORDERS: Mapping[str, Order] = {
    "opera": opera,
    "operators": operators,
    "parameters": parameters,
    "random": at_random,
}
"""By name, as `miscompile migrate --order` takes them."""


def ranked(name: str, instances: Sequence[Instance], facts: RankingFacts) -> list[int]:
    """Return the places of `instances` in the order called `name`.

    Raises UsageError for an unknown name and for instances of several libraries.
    """
    order = ORDERS.get(name)
    if order is None:
        raise UsageError(f"there is no order '{name}'; there are: {', '.join(ORDERS)}")
    check_library(instances)
    return order(instances, facts)


def check_library(instances: Sequence[Instance]) -> None:
    """Raise UsageError for instances of several libraries, because their operators are counted apart."""
    if len({instance.library for instance in instances}) > 1:
        raise UsageError("instances of several libraries cannot be ranked together; rank those of each by themselves")


def _diverse(instances: Sequence[Instance], scores: Mapping[OperatorKey, float], seed: int) -> list[int]:
    """Repeatedly take the test with the greatest product; only the scores of its operator's other tests then change.

    The heap holds one entry per operator, for its best test. An operator leaves the heap when none of its tests covers
    anything new; its remaining tests have the score 0 and come last.
    """
    places = shuffled(len(instances), seed, "diverse")
    tables = settings_of(instances, places)
    heap = [(-scores[operator], number, operator) for number, operator in enumerate(tables)]
    heapq.heapify(heap)
    found: list[int] = []
    while heap:
        _, number, operator = heap[0]
        table = tables[operator]
        row = table.best()
        found.append(table.places[row].pop())
        table.take(row)
        best = table.score(table.best())
        if best > 0:
            heapq.heapreplace(heap, (-scores[operator] * best, number, operator))
        else:
            heapq.heappop(heap)
    taken = set(found)
    return [*found, *(place for place in places if place not in taken)]
