"""Examination: the one loop that lets an oracle plan runs, executes them, and judges them, in several rounds if needed.

Campaigns, migrations, reduction, bisection and replays all use it, so that the same program gets the same verdict
everywhere.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from miscompile.core.case import Case
from miscompile.core.outcome import Outcome
from miscompile.core.ports import Oracle, Runner
from miscompile.core.run import Run
from miscompile.core.verdict import Inconclusive, Needs, Verdict, Violated

MOST_ROUNDS = 4
"""Further rounds that an oracle may ask for; it may need one for each build that it judges."""


@dataclass(frozen=True, slots=True)
class Examination:
    """A verdict with the runs that it is based on; `outcomes[i]` belongs to `runs[i]`.

    `verdict` is never Needs: an oracle that asks for more than `MOST_ROUNDS` further rounds gets Inconclusive.
    `rounds` counts the further rounds.
    """

    verdict: Verdict
    runs: tuple[Run, ...]
    outcomes: tuple[Outcome, ...]
    rounds: int = 0

    def outcome_of(self, run: Run | None) -> Outcome | None:
        """Return the outcome of `run`, None when it is not among the runs."""
        for known, outcome in zip(self.runs, self.outcomes, strict=True):
            if known == run:
                return outcome
        return None

    @property
    def faulty(self) -> Outcome | None:
        """The outcome of the run that the evidence blames; None unless the property is violated."""
        return self.outcome_of(self.verdict.evidence.faulty) if isinstance(self.verdict, Violated) else None

    @property
    def reference(self) -> Outcome | None:
        """The outcome that the faulty one was compared with; None when there is none."""
        return self.outcome_of(self.verdict.evidence.reference) if isinstance(self.verdict, Violated) else None


def examine(case: Case, oracle: Oracle, runner: Runner, rng: random.Random) -> Examination:
    """Examine `case` with `oracle`; `rng` is the randomness of the oracle's plan."""
    return examine_all([case], oracle, runner, rng)[0]


def examine_all(cases: Sequence[Case], oracle: Oracle, runner: Runner, rng: random.Random) -> list[Examination]:
    """Examine every case with `oracle`; each round of all cases is one batch of the runner."""
    planned = [oracle.plan(case, rng) for case in cases]
    outcomes = iter(runner.run([run for runs in planned for run in runs]))
    return conclude_all([(runs, tuple(next(outcomes) for _ in runs)) for runs in planned], oracle, runner)


def conclude(runs: tuple[Run, ...], outcomes: Sequence[Outcome], oracle: Oracle, runner: Runner) -> Examination:
    """Judge the first round of one case, which has been run already; execute the further runs that the oracle needs."""
    return conclude_all([(runs, tuple(outcomes))], oracle, runner)[0]


def conclude_all(
    known: Sequence[tuple[tuple[Run, ...], tuple[Outcome, ...]]], oracle: Oracle, runner: Runner
) -> list[Examination]:
    """Judge the first rounds of several cases; each further round of all of them is one batch."""
    found = [Examination(oracle.judge(runs, outcomes), runs, outcomes) for runs, outcomes in known]
    for number in range(1, MOST_ROUNDS + 1):
        asking = {place: one.verdict.runs for place, one in enumerate(found) if isinstance(one.verdict, Needs)}
        if not asking:
            break
        answers = iter(runner.run([run for more in asking.values() for run in more]))
        for place, more in asking.items():
            runs = found[place].runs + more
            outcomes = found[place].outcomes + tuple(next(answers) for _ in more)
            found[place] = Examination(oracle.judge(runs, outcomes), runs, outcomes, number)
    return [_decided(one) for one in found]


def _decided(one: Examination) -> Examination:
    if not isinstance(one.verdict, Needs):
        return one
    return Examination(Inconclusive("the oracle asks for too many rounds"), one.runs, one.outcomes, one.rounds)
