"""What a report says about switching the culprit passes off and on: each statement is a run that was made.

A search for culprits works with all other passes off. Users switch one pass off and leave the others on, and there
another pass may cause the same bug. So both are run on the reduced case.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.core.examination import examine
from miscompile.core.ports import PropertyOracle, Runner
from miscompile.core.verdict import Violated
from miscompile.triage.bisect import Twins, expand, only, without
from miscompile.triage.signature import similar, symptom_of


@dataclass(frozen=True, slots=True)
class PassClaims:
    """The runs with the culprits of a bug switched.

    `alone`: the bug shows with every optional pass off but the culprits. `gone` maps each culprit to whether the bug is
    gone with only that one (and its twins) off, and every other pass as in the faulty build.
    """

    alone: bool
    gone: dict[str, bool]

    def as_json(self) -> dict[str, Any]:
        """Return the fact `switching`."""
        return {"alone": self.alone, "gone": self.gone}


def claims(
    case: Case,
    held: PropertyOracle,
    guilty: Sequence[str],
    passes: Iterable[str],
    twins: Twins,
    runner: Runner,
    rng: random.Random,
) -> PassClaims:
    """Switch the culprits `guilty` of the violation of `held` by `case`, and return what happens.

    Takes an examination for each culprit, and two more.
    """
    seed = rng.getrandbits(64)

    def shows(asked: PropertyOracle) -> bool:
        seen = examine(case, asked, runner, stream(seed, "claims"))
        if not isinstance(seen.verdict, Violated) or wanted is None:
            return False
        return similar(symptom_of(seen.verdict.evidence, seen.faulty), wanted)

    first = examine(case, held, runner, stream(seed, "claims"))
    wanted = symptom_of(first.verdict.evidence, first.faulty) if isinstance(first.verdict, Violated) else None
    return PassClaims(
        shows(only(held, guilty, passes, twins)),
        {name: not shows(without(held, expand((name,), twins))) for name in guilty},
    )
