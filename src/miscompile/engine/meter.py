"""The meter of a lane: what the tests of each arm cost and yield, for the scheduler."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any

from miscompile.core.arms import ArmYield
from miscompile.core.outcome import Outcome, TimedOut, Values
from miscompile.core.run import Run
from miscompile.producers.scheduled import ARM

PassPair = tuple[str, str, str]
"""The name of a target, and two of its passes in alphabetical order."""


@dataclass(slots=True)
class ArmMeter:
    """Counts by arm since the last report, and the pairs of passes that are new to this lane.

    `names` maps the spec of each target to the name under which its passes are counted; a run that was stopped took
    `limit_seconds`.
    """

    names: Mapping[str, str]
    limit_seconds: float
    _counts: dict[str, ArmYield] = field(default_factory=dict)
    _seen: set[PassPair] = field(default_factory=set)
    _fresh: dict[str, list[PassPair]] = field(default_factory=dict)

    def note(self, recipe: Mapping[str, Any], runs: Sequence[Run], outcomes: Sequence[Outcome], spent_us: int) -> None:
        """Count a test of the arm that `recipe` names; `spent_us` is the CPU time beside the given outcomes'."""
        arm = recipe.get(ARM)
        if arm is None:
            return
        seconds = 0.0
        for run, outcome in zip(runs, outcomes, strict=True):
            took = outcome.observations
            seconds += self.limit_seconds if isinstance(outcome, TimedOut) else took.cpu_seconds
            if run.build.observe and isinstance(outcome, Values):
                self._watch(arm, self.names[run.target], sorted(took.passes))
        self._add(arm, ArmYield(tests=1, cpu_us=spent_us + round(1e6 * seconds)))

    def cost(self, recipe: Mapping[str, Any], spent_us: int) -> None:
        """Charge CPU time, in microseconds, to the arm that `recipe` names."""
        if ARM in recipe:
            self._add(recipe[ARM], ArmYield(cpu_us=spent_us))

    def violation(self, recipe: Mapping[str, Any]) -> None:
        """Count a violation of the arm that `recipe` names."""
        if ARM in recipe:
            self._add(recipe[ARM], ArmYield(violations=1))

    def take(self) -> dict[str, dict[str, int]]:
        """Return the counts by arm as JSON values, and set them to zero."""
        counts = {arm: asdict(one) for arm, one in self._counts.items()}
        self._counts = {}
        return counts

    def take_pairs(self) -> dict[str, list[PassPair]]:
        """Return by arm the pairs of passes that fired together first in one of its tests, each only once."""
        fresh, self._fresh = self._fresh, {}
        return fresh

    def _add(self, arm: str, counts: ArmYield) -> None:
        self._counts[arm] = self._counts.get(arm, ArmYield()).plus(counts)

    def _watch(self, arm: str, target: str, passes: Sequence[str]) -> None:
        for one, other in combinations(passes, 2):
            pair = (target, one, other)
            if pair not in self._seen:
                self._seen.add(pair)
                self._fresh.setdefault(arm, []).append(pair)
