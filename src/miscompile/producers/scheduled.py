"""Cases of a scheduled campaign: each is of an arm that is drawn by the weights of the scheduler."""

import random
from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from miscompile.base.errors import UsageError
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome
from miscompile.core.ports import Producer
from miscompile.core.verdict import Verdict

OBSERVED = 0.1
"""Share of the cases whose passes are observed, which costs compiler time."""

ARM, CHECK = "arm", "check"
"""The keys under which the recipe of a case names its arm, and the check whose oracle judges it."""


@dataclass(frozen=True, slots=True)
class ScheduledArm:
    """An arm as it is drawn: `source` is the key of its producer, which several arms share; `oracle` is the name of an
    oracle for the recipe (empty: none)."""

    name: str
    source: str
    check: str
    oracle: str = ""


@dataclass(slots=True)
class Scheduled:
    """Draws an arm for every case; `weights` by name are relative to each other.

    `makers` make the producers by key, each when it is drawn first, because a campaign starts earlier that way. An arm
    whose producer has nothing to propose (UsageError) is removed, and `removed` names it.
    """

    arms: tuple[ScheduledArm, ...]
    makers: Mapping[str, Callable[[], Producer]]
    weights: Mapping[str, float]
    removed: list[str] = field(default_factory=list)
    _producers: dict[str, Producer] = field(default_factory=dict)
    _sources: Mapping[str, str] = field(init=False)
    _weighed: list[ScheduledArm] = field(init=False)
    _sums: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self._sources = {arm.name: arm.source for arm in self.arms}
        self.divide(self.weights)

    def divide(self, weights: Mapping[str, float]) -> None:
        """Draw by other weights from now on; an arm that is not named keeps a weight of zero."""
        self.weights = weights
        # Where only arms are left that the scheduler has given nothing, all of them are equal.
        self._weighed = [arm for arm in self.arms if weights.get(arm.name, 0.0) > 0] or list(self.arms)
        self._sums = list(accumulate(weights.get(arm.name, 0.0) or 1.0 for arm in self._weighed))

    def prepare(self) -> None:
        """Make all producers now, so that no test bears the cost. Raises UsageError when every one raises it."""
        for source in dict.fromkeys(arm.source for arm in self.arms):
            try:
                self._producer(source)
            except UsageError as error:
                self._remove(source, error)

    def propose(self, rng: random.Random) -> Case:
        """Return a case of a drawn arm. Raises UsageError when the last one has nothing to propose."""
        while True:
            arm = self._drawn(rng)
            try:
                case = self._producer(arm.source).propose(rng)
            except UsageError as error:
                self._remove(arm.source, error)
                continue
            more: dict[str, Any] = {ARM: arm.name, CHECK: arm.check}
            if arm.oracle:
                more["oracle"] = arm.oracle
            if "observe" not in case.recipe and rng.random() < OBSERVED:
                more["observe"] = True
            return replace(case, recipe={**case.recipe, **more})

    def learn(self, case: Case, outcomes: Sequence[Outcome], verdict: Verdict) -> None:
        """Forward the outcomes to the producer that made the case."""
        producer = self._producers.get(self._sources.get(case.recipe.get(ARM, ""), ""))
        if producer is not None:
            producer.learn(case, outcomes, verdict)

    def take_removed(self) -> list[str]:
        """Return the arms that were removed since the last call."""
        gone, self.removed = self.removed, []
        return gone

    def _drawn(self, rng: random.Random) -> ScheduledArm:
        place = bisect(self._sums, rng.random() * self._sums[-1])
        return self._weighed[min(place, len(self._weighed) - 1)]  # a product of subnormal numbers rounds up to the sum

    def _producer(self, source: str) -> Producer:
        if source not in self._producers:
            self._producers[source] = self.makers[source]()
        return self._producers[source]

    def _remove(self, source: str, error: UsageError) -> None:
        """Remove the arms of a producer because of its error, which is raised if no arm would be left."""
        if all(arm.source == source for arm in self.arms):
            raise error
        self.removed += [arm.name for arm in self.arms if arm.source == source]
        self.arms = tuple(arm for arm in self.arms if arm.source != source)
        self.divide(self.weights)
