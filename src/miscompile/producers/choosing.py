"""A producer for several targets: each case is made for some of them, from the calls that all of these support.

The common support shrinks with every target, and a pair has more in common than all. So half of the cases are for all
targets, the others for a pair.
"""

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from miscompile.base.errors import UsageError
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome
from miscompile.core.ports import Producer
from miscompile.core.verdict import Verdict

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
