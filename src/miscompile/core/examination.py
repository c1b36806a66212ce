"""Examination: hold a case against an oracle. This is the one loop that plans, runs, judges, and asks again.

Campaigns, migrations, reduction, bisection and replays all decide by it, so that the same program gets the same verdict
wherever it is judged.
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
"""How often an oracle may ask for further runs of a case. It may need a round for each build that it judges."""


@dataclass(frozen=True, slots=True)
class Examination:
    """A verdict with the runs it stands on; `outcomes[i]` came of `runs[i]`.

    `verdict` is never Needs: an oracle that asks for more than `MOST_ROUNDS` further rounds gets Inconclusive.
    `rounds` counts the further rounds.
    """

    verdict: Verdict
    runs: tuple[Run, ...]
    outcomes: tuple[Outcome, ...]
    rounds: int = 0

    def outcome_of(self, run: Run | None) -> Outcome | None:
        """Return what came of `run`, None when it was not among the runs."""
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
        """The outcome that the faulty one was held against; None when there is none."""
        return self.outcome_of(self.verdict.evidence.reference) if isinstance(self.verdict, Violated) else None


def examine(case: Case, oracle: Oracle, runner: Runner, rng: random.Random) -> Examination:
    """Hold `case` against `oracle`; `rng` feeds the oracle's plan."""
    return examine_all([case], oracle, runner, rng)[0]


def examine_all(cases: Sequence[Case], oracle: Oracle, runner: Runner, rng: random.Random) -> list[Examination]:
    """Hold every case against `oracle`; each round of all cases is one batch of the runner."""
    planned = [oracle.plan(case, rng) for case in cases]
    outcomes = iter(runner.run([run for runs in planned for run in runs]))
    return conclude_all([(runs, tuple(next(outcomes) for _ in runs)) for runs in planned], oracle, runner)


def conclude(runs: tuple[Run, ...], outcomes: Sequence[Outcome], oracle: Oracle, runner: Runner) -> Examination:
    """Judge the first round of one case, which has been run already, and run what the oracle asks for besides."""
    return conclude_all([(runs, tuple(outcomes))], oracle, runner)[0]


def conclude_all(
    known: Sequence[tuple[tuple[Run, ...], tuple[Outcome, ...]]], oracle: Oracle, runner: Runner
) -> list[Examination]:
    """Judge the first rounds of several cases; the further rounds of those that need some are batches."""
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
