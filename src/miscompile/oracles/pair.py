"""The build pair: one case, one target, two builds, one judgement. Everything in triage is held against it."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from miscompile.core.case import Case
from miscompile.core.outcome import Outcome
from miscompile.core.run import Build, Purpose, Run
from miscompile.core.verdict import Verdict
from miscompile.oracles.judge import Rule, judge_pair


@dataclass(frozen=True, slots=True)
class BuildPair:
    """Oracle that holds build `faulty` against build `reference` of the same target.

    `rule` names the comparison of values (`strict` picks the strictest that applies). Judging needs a second
    round (Monte-Carlo runs) only after a mismatch.
    """

    target: str
    reference: Build
    faulty: Build
    rule: Rule = "strict"
    purpose: Purpose = "fuzz"

    def plan(self, case: Case, rng: random.Random) -> tuple[Run, ...]:
        """Return the reference run and the faulty run."""
        del rng
        return (
            Run(case, self.target, self.reference, self.purpose),
            Run(case, self.target, self.faulty, self.purpose),
        )

    def judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        """Judge the pair; runs beyond the first two are the Monte-Carlo round."""
        return judge_pair(runs, outcomes, self.rule)

    def with_disabled(self, disabled: frozenset[str]) -> "BuildPair":
        """Return the same pair with exactly these passes off in the faulty build."""
        return replace(self, faulty=replace(self.faulty, disabled=disabled))
