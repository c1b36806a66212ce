"""Several producers combined into one, each with its share of the cases."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from miscompile.base.errors import UsageError
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome
from miscompile.core.ports import Producer
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
