"""The division of a campaign's time among its arms: counts of lanes and triage, and weights from them."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from miscompile.base.rng import stream
from miscompile.core.arms import ArmYield
from miscompile.engine.arms import arms_of
from miscompile.engine.bandit import Bandit
from miscompile.engine.meter import PassPair
from miscompile.engine.plan import Plan

EVERY = 2.0
"""Seconds between two divisions of the time."""

_NEW, _CONFIRMED = ArmYield(signatures=1), ArmYield(confirmed=1)


@dataclass(slots=True)
class Division:
    """The arms of a campaign as its coordinator sees them.

    `earlier` are the counts of former sessions, `pairs` the pairs of passes that fired together in these.
    """

    plan: Plan
    session: int
    earlier: Mapping[str, ArmYield]
    pairs: set[PassPair]
    counts: dict[str, ArmYield] = field(init=False)
    _unsaved: dict[str, ArmYield] = field(default_factory=dict)
    _bandit: Bandit = field(init=False)
    _rng: random.Random = field(init=False)
    _divided: float = 0.0

    def __post_init__(self) -> None:
        self._bandit = Bandit(arms_of(self.plan))
        self._rng = stream(self.plan.seed, "arms", self.session)
        self.counts = dict(self.earlier)
        for arm, counts in self.earlier.items():
            self._bandit.add(arm, counts)

    def add(self, counts: Mapping[str, Mapping[str, int]]) -> None:
        """Add the counts of a lane."""
        for arm, values in counts.items():
            self._count(arm, ArmYield(**values))

    def add_pairs(self, found: Mapping[str, Iterable[Iterable[str]]]) -> None:
        """Credit each arm with the pairs of passes that no lane has seen before."""
        for arm, rows in found.items():
            fresh = {(target, one, other) for target, one, other in rows} - self.pairs
            self.pairs |= fresh
            self._count(arm, ArmYield(pairs=len(fresh)))

    def new_signature(self, arm: str) -> None:
        """Credit an arm with a new signature."""
        self._count(arm, _NEW)

    def confirmed(self, arm: str) -> None:
        """Credit an arm with a new signature that survived triage."""
        self._count(arm, _CONFIRMED)

    def drop(self, arm: str) -> None:
        """Leave out an arm that a lane has found to be of no use."""
        self._bandit.drop(arm)

    def weights(self, now: float) -> dict[str, float] | None:
        """Return the new weights of the arms `now` (seconds on any clock); None while the last ones hold.

        They hold for good when the number of tests is fixed, so that such a campaign repeats itself.
        """
        if self.plan.tests is not None or now - self._divided < EVERY:
            return None
        self._divided = now
        return self._bandit.weights(self._rng)

    def take(self) -> dict[str, ArmYield]:
        """Return the counts since the last call, for the store."""
        unsaved, self._unsaved = self._unsaved, {}
        return unsaved

    def _count(self, arm: str, more: ArmYield) -> None:
        if not arm or more == ArmYield():
            return
        self._bandit.add(arm, more)
        for counts in (self.counts, self._unsaved):
            counts[arm] = counts.get(arm, ArmYield()).plus(more)
