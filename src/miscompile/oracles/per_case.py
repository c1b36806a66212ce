"""An oracle for campaigns with several kinds of case: the recipe of a case names the oracle that judges it."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from miscompile.core.case import Case
from miscompile.core.outcome import Outcome
from miscompile.core.ports import Oracle
from miscompile.core.run import Run
from miscompile.core.verdict import Verdict


@dataclass(frozen=True, slots=True)
class PerCaseOracle:
    """Delegates each case to the oracle that its recipe names under `oracle`, or to the `usual` one if it names none.

    Raises KeyError for a name that is not in `special`, because a producer without its oracle is a wiring error.
    """

    usual: Oracle
    special: Mapping[str, Oracle]

    def plan(self, case: Case, rng: random.Random) -> tuple[Run, ...]:
        """Return the runs that the case's oracle plans."""
        return self._of(case).plan(case, rng)

    def judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        """Return the verdict of the case's oracle."""
        return self._of(runs[0].case).judge(runs, outcomes)

    def _of(self, case: Case) -> Oracle:
        name = case.recipe.get("oracle")
        return self.usual if name is None else self.special[name]
