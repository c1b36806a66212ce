"""Every order of migrated tests: those of `miscompile migrate`, and the baselines that OPERA is compared with.

The baselines (section IV-B of the paper) are no choices of `migrate`: an order by statements runs every test once
before the first is ranked, so that a migration in that order would save nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evaluation.opera import statements
from evaluation.opera.fast import fast
from miscompile.base.errors import UsageError
from miscompile.instances.code import digest_of
from miscompile.instances.instance import Instance
from miscompile.migration.ranking import order
from miscompile.migration.ranking.order import Order, RankingFacts, check_library, shuffled


@dataclass(frozen=True, slots=True)
class CoveredFacts(RankingFacts):
    """The facts that every order may use.

    `coverage` has the statements of the front end that an instance reaches, by the instance's digest; it is empty when
    they were not collected.
    """

    coverage: Mapping[str, frozenset[int | str]] = field(default_factory=dict)


def first_come(instances: Sequence[Instance], facts: RankingFacts) -> list[int]:
    """Leave the instances in the order in which they were harvested."""
    del facts
    return list(range(len(instances)))


def similarity(instances: Sequence[Instance], facts: RankingFacts) -> list[int]:
    """Rank by FAST-pw, which takes each test for a text."""
    return fast([statements.text_of(instance) for instance in instances], facts.seed)


def total(instances: Sequence[Instance], facts: RankingFacts) -> list[int]:
    """Rank by the number of statements that a test reaches. Raises UsageError without coverage."""
    return statements.total(_covered(instances, facts), shuffled(len(instances), facts.seed, "total"))


def additional(instances: Sequence[Instance], facts: RankingFacts) -> list[int]:
    """Rank by the number of statements that a test reaches and no test before it does. Raises UsageError without
    coverage."""
    return statements.additional(_covered(instances, facts), shuffled(len(instances), facts.seed, "additional"))


ORDERS: Mapping[str, Order] = {
    **order.ORDERS,
    "fast": similarity,
    "total": total,
    "additional": additional,
    "first-come": first_come,
}
"""By name."""

BY_STATEMENTS = frozenset({"total", "additional"})
"""Orders that cannot do without coverage."""


def ranked(name: str, instances: Sequence[Instance], facts: RankingFacts) -> list[int]:
    """Return the places of `instances` in the order called `name`.

    Raises UsageError for an unknown name, for instances of several libraries, and when coverage is missing.
    """
    chosen = ORDERS.get(name)
    if chosen is None:
        raise UsageError(f"there is no order '{name}'; there are: {', '.join(ORDERS)}")
    check_library(instances)
    return chosen(instances, facts)


def _covered(instances: Sequence[Instance], facts: RankingFacts) -> list[frozenset[int | str]]:
    if not isinstance(facts, CoveredFacts) or not facts.coverage:
        raise UsageError("this order needs the statements that each test reaches; collect them first")
    return [facts.coverage.get(digest_of(instance), frozenset()) for instance in instances]
