"""Producers made of producers: a mixture, one for several targets, and one whose cases are shared out among oracles."""

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from miscompile.base.errors import UsageError
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome
from miscompile.core.ports import FiniteProducer, Producer
from miscompile.core.verdict import Verdict


@dataclass(slots=True)
class Mixture:
    """Draws a producer for every case, in proportion to the shares. A producer that raises UsageError is removed."""

    parts: tuple[tuple[Producer, float], ...]
    _sums: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self._sums = list(accumulate(share for _, share in self.parts))

    def propose(self, rng: random.Random) -> Case:
        """Return the next case of a drawn producer. Raises UsageError when the last one has nothing to propose."""
        while True:
            place = rng.random() * self._sums[-1]
            chosen = next(number for number, limit in enumerate(self._sums) if place < limit)
            try:
                return self.parts[chosen][0].propose(rng)
            except UsageError:
                if len(self.parts) == 1:
                    raise
            self.parts = (*self.parts[:chosen], *self.parts[chosen + 1 :])
            self._sums = list(accumulate(share for _, share in self.parts))

    def learn(self, case: Case, outcomes: Sequence[Outcome], verdict: Verdict) -> None:
        """Forward the outcomes to every producer; each recognises its own cases by their recipes."""
        for producer, _ in self.parts:
            producer.learn(case, outcomes, verdict)


ALL_CHANCE = 0.5


class Choosing:
    """Cases whose recipe names the `targets` that they are meant for.

    `make` returns the producer for some of the targets, and raises UsageError when these have nothing in common.
    """

    def __init__(self, targets: Sequence[str], make: Callable[[tuple[str, ...]], Producer]) -> None:
        everyone = tuple(targets)
        pairs = [pair for pair in itertools.combinations(everyone, 2) if pair != everyone]
        self._parts: dict[tuple[str, ...], Producer] = {}
        for chosen in (everyone, *pairs):
            try:
                self._parts[chosen] = make(chosen)
            except UsageError:
                continue  # these targets have nothing in common; other pairs may
        if not self._parts:
            raise UsageError(f"{', '.join(everyone)} have no operator in common")
        self._everyone = everyone

    def propose(self, rng: random.Random) -> Case:
        """Return a case for some targets."""
        others = [chosen for chosen in self._parts if chosen != self._everyone]
        everyone = self._everyone in self._parts and (not others or rng.random() < ALL_CHANCE)
        chosen = self._everyone if everyone else rng.choice(others)
        case = self._parts[chosen].propose(rng)
        return replace(case, recipe={**case.recipe, "targets": list(chosen)})

    def learn(self, case: Case, outcomes: Sequence[Outcome], verdict: Verdict) -> None:
        """Forward the outcomes of a case to the producer that made it; cases of other producers name no targets."""
        part = self._parts.get(tuple(case.recipe.get("targets", ())))
        if part is not None:
            part.learn(case, outcomes, verdict)


SHARE = 0.3
"""Share of the cases that go to oracles of other packages, each as likely as the next."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """Has `producer` make the cases, and gives a `share` of those that name no oracle to one of `oracles`."""

    producer: Producer
    oracles: tuple[str, ...]
    share: float = SHARE

    def propose(self, rng: random.Random) -> Case:
        """Return a case of the producer."""
        case = self.producer.propose(rng)
        if "oracle" in case.recipe or rng.random() >= self.share:
            return case
        return replace(case, recipe={**case.recipe, "oracle": rng.choice(self.oracles)})

    def learn(self, case: Case, outcomes: Sequence[Outcome], verdict: Verdict) -> None:
        """Let the producer learn."""
        self.producer.learn(case, outcomes, verdict)


def finite_part(producer: Producer) -> FiniteProducer | None:
    """Return the producer of a campaign that ends by itself, without what only adds to its cases; None for others."""
    inner = producer.producer if isinstance(producer, Assigned) else producer
    return inner if isinstance(inner, FiniteProducer) else None
