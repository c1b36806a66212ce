"""Cases shared out among oracles: a part of the producer's cases names an oracle of its own in the recipe."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from miscompile.core.case import Case
from miscompile.core.outcome import Outcome
from miscompile.core.ports import Producer
from miscompile.core.verdict import Verdict

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
