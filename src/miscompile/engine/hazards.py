"""The budget for costly cases: a class of case that hangs, dies or shows known bugs often gets few of the tests.

A death costs a worker, a hang costs the time limit of a run, and each new one is attributed before the next case. One
kind of check whose compiler dies in every tenth test therefore takes most of a campaign's time. So does a transform
that brings a known bug in which no pass can be switched off. The class of a case is its producer, its oracle and the
transforms of its runs. All costs are counted in tests and not in seconds, so that a
lane draws the same cases on a slow machine.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from miscompile.core.case import Case
from miscompile.core.outcome import Outcome, TimedOut, is_death
from miscompile.core.run import Run

DEATH_COST = 10.0
HANG_COST = 200.0
"""Costs of a run that kills its worker, and of one that is killed at the time limit, in tests."""

WORTH = 0.5
"""Cost of a class's deaths and hangs, in tests for each test, up to which it is tested as often as it is drawn."""

LEAST_SHARE = 0.02
"""Share of its drafts in which a class is tested however dangerous it is, because its bugs may be others meanwhile."""

LEAST_TESTS = 100
"""Tests that are taken for granted when a rate is estimated, so that one early hang does not decide."""

CaseClass = tuple[str, str, tuple[str, ...]]
"""Producer, oracle (empty: the usual one), and names of the transforms."""


def class_of(case: Case, runs: Sequence[Run]) -> CaseClass:
    """Return the class of a case that is tested by `runs`."""
    producer, oracle = str(case.recipe.get("producer", "")), str(case.recipe.get("oracle", ""))
    transforms = {run.build.transform.name for run in runs if run.build.transform is not None}
    return producer.partition("{")[0], oracle.partition("{")[0], tuple(sorted(transforms))


@dataclass(slots=True)
class Hazards:
    """The tests and costs of each class so far in a lane."""

    tests: Counter[CaseClass] = field(default_factory=Counter)
    costs: dict[CaseClass, float] = field(default_factory=dict)

    def share(self, kind: CaseClass) -> float:
        """Return the share of a class's drafts that is tested, 1 for a class that costs little."""
        rate = self.costs.get(kind, 0.0) / (LEAST_TESTS + self.tests[kind])
        return max(LEAST_SHARE, WORTH / max(rate, WORTH))

    def count(self, kind: CaseClass, outcomes: Sequence[Outcome]) -> None:
        """Count a test and the cost of its deaths and hangs."""
        self.tests[kind] += 1
        cost = sum(
            HANG_COST if isinstance(outcome, TimedOut) else DEATH_COST for outcome in outcomes if is_death(outcome)
        )
        if cost:
            self.costs[kind] = self.costs.get(kind, 0.0) + cost

    def charge(self, kind: CaseClass, cost: float) -> None:
        """Add the cost, in tests, of attributing a violation of this class, or of recognising it."""
        self.costs[kind] = self.costs.get(kind, 0.0) + cost

    def charge_bug(self, kind: CaseClass, passes: Collection[str], cost: float) -> None:
        """Add the cost of a bug, in tests, if a transform of the class brings it and no pass can be switched off."""
        _, _, transforms = kind
        if transforms and not passes:
            self.charge(kind, cost)
