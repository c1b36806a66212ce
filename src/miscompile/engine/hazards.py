"""The budget for costly cases: a class of case that hangs, dies or shows known bugs often gets few of the tests.

A death costs a worker, a hang costs the time limit of a run, and each new one is attributed before the next case. One
kind of check whose compiler dies in every tenth test therefore takes most of a campaign's time. So does a transform
that brings a known bug in which no pass can be switched off. The class of a case is its producer, its oracle and the
transforms of its runs. All costs are counted in tests and not in seconds, so that a
lane draws the same cases on a slow machine.

Where several targets are held against each other, the target is to blame and not the class. A target that dies or shows
known bugs often takes part in few of the tests, so that the others are judged at their own speed.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

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

LEAST_PART = 0.1
"""Share of the tests in which a target takes part however often it fails, because its other bugs are looked for too."""

KNOWN_COST = 20.0
"""Cost of the search for the culprits of a known bug where several targets run, in tests.

It is less than for one target, because a test of several targets costs more.
"""

LEAST_TESTS = 100
"""Tests that are taken for granted when a rate is estimated, so that one early hang does not decide."""

CaseClass = tuple[str, str, tuple[str, ...]]
"""Producer, oracle (empty: the usual one), and names of the transforms."""


def class_of(case: Case, runs: Sequence[Run]) -> CaseClass:
    """Return the class of a case that is tested by `runs`."""
    producer, oracle = str(case.recipe.get("producer", "")), str(case.recipe.get("oracle", ""))
    transforms = {run.build.transform.name for run in runs if run.build.transform is not None}
    return producer.partition("{")[0], oracle.partition("{")[0], tuple(sorted(transforms))


Key = TypeVar("Key", bound=Hashable)


@dataclass(slots=True)
class Hazards(Generic[Key]):
    """The tests and costs so far in a lane, by class of case or by target. `least` is the least share of the tests."""

    least: float = LEAST_SHARE
    tests: Counter[Key] = field(default_factory=Counter)
    costs: dict[Key, float] = field(default_factory=dict)

    def share(self, key: Key) -> float:
        """Return the share of its drafts in which a class or target is tested, 1 for one that costs little."""
        rate = self.costs.get(key, 0.0) / (LEAST_TESTS + self.tests[key])
        return max(self.least, WORTH / max(rate, WORTH))

    def count(self, key: Key, outcomes: Sequence[Outcome]) -> None:
        """Count a test and the cost of its deaths and hangs; `outcomes` are those of its runs."""
        self.tests[key] += 1
        cost = sum(
            HANG_COST if isinstance(outcome, TimedOut) else DEATH_COST for outcome in outcomes if is_death(outcome)
        )
        if cost:
            self.charge(key, cost)

    def charge(self, key: Key, cost: float) -> None:
        """Add the cost, in tests, of attributing a violation, or of recognising it."""
        self.costs[key] = self.costs.get(key, 0.0) + cost
