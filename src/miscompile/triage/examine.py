"""Examination: hold one case against one oracle, all rounds included. Everything in triage asks this way."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from miscompile.core.case import Case, Feed
from miscompile.core.outcome import Outcome
from miscompile.core.ports import Oracle, Runner
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Inconclusive, Needs, Verdict, Violated


@dataclass(frozen=True, slots=True)
class Examination:
    """A verdict with the runs it stands on; `outcomes[i]` came of `runs[i]`."""

    verdict: Verdict
    runs: tuple[Run, ...]
    outcomes: tuple[Outcome, ...]

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


def examine(case: Case, oracle: Oracle, runner: Runner, rng: random.Random, rounds: int = 3) -> Verdict:
    """Plan, run and judge; run again as often as the oracle asks, but judge at most `rounds` times.

    Never returns Needs: an oracle that is still not content gets Inconclusive.
    """
    return examine_fully(case, oracle, runner, rng, rounds).verdict


def examine_fully(case: Case, oracle: Oracle, runner: Runner, rng: random.Random, rounds: int = 3) -> Examination:
    """Like `examine`, and keep the runs and outcomes as well."""
    runs = oracle.plan(case, rng)
    outcomes = tuple(runner.run(runs))
    verdict = oracle.judge(runs, outcomes)
    for _ in range(rounds - 1):
        if not isinstance(verdict, Needs):
            break
        outcomes += tuple(runner.run(verdict.runs))
        runs += verdict.runs
        verdict = oracle.judge(runs, outcomes)
    if isinstance(verdict, Needs):
        verdict = Inconclusive("the oracle asks for too many rounds")
    return Examination(verdict, runs, outcomes)


class Remembering:
    """A Runner that runs nothing twice: the key is program, feeds, target and build.

    Bisection asks for the same reference run dozens of times; purposes do not change outcomes. Not for the
    confirmation of findings, where running again is the point: that is what `afresh`, the wrapped runner, is there for.
    """

    def __init__(self, runner: Runner) -> None:
        self.afresh = runner
        self._known: dict[tuple[str, tuple[int, ...], str, Build], Outcome] = {}
        self._feeds: dict[int, Feed] = {}

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        """Return one outcome for each run, the new ones from the wrapped runner in one batch."""
        keys = [self._key(run) for run in runs]
        fresh = {key: run for key, run in zip(keys, runs, strict=True) if key not in self._known}
        if fresh:
            self._known.update(zip(fresh, self.afresh.run(list(fresh.values())), strict=True))
        return [self._known[key] for key in keys]

    def _key(self, run: Run) -> tuple[str, tuple[int, ...], str, Build]:
        for feed in run.case.feeds:
            self._feeds[id(feed)] = feed  # keeps the feed alive, so that its id stays its own
        return run.case.program.digest, tuple(map(id, run.case.feeds)), run.target, run.build
