"""The build pair: one case, one target, two builds, one judgement. Everything in triage is held against it."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from miscompile.core.case import Case
from miscompile.core.outcome import Outcome
from miscompile.core.run import Build, Purpose, Run
from miscompile.core.verdict import Holds, Needs, Verdict, Violated
from miscompile.oracles.disruptive import is_invalid, judge_invalid
from miscompile.oracles.instrumentation import NOT_NARROWED
from miscompile.oracles.judge import Rule, is_noise, judge_pair


@dataclass(frozen=True, slots=True)
class BuildPair:
    """Oracle that holds build `faulty` of `target` against build `reference` of the same target, or of `against`.

    `rule` names the comparison of values (`strict` picks the strictest that applies). Judging needs a second
    round (Monte-Carlo runs) only after a mismatch. With `healed`, a build in which the guilty passes are off, the
    property is violated only if that build is not at fault: so a reduction cannot slip to another pass. `narrowed`
    says which types one of the targets computes in a narrower one by design.
    """

    target: str
    reference: Build
    faulty: Build
    rule: Rule = "strict"
    purpose: Purpose = "fuzz"
    healed: Build | None = None
    against: str = ""
    narrowed: Mapping[str, str] = field(default_factory=lambda: NOT_NARROWED)

    def plan(self, case: Case, rng: random.Random) -> tuple[Run, ...]:
        """Return the reference run and the faulty run, and the healed run if there is one."""
        del rng
        builds = (self.faulty, *((self.healed,) if self.healed else ()))
        reference = Run(case, self.against or self.target, self.reference, self.purpose)
        return (reference, *(Run(case, self.target, build, self.purpose) for build in builds))

    def judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        """Judge the pair; Monte-Carlo runs stand at the end."""
        noise = [place for place, run in enumerate(runs) if is_noise(run)]
        verdict = self._judge(runs, outcomes, [0, 1, *noise])
        if self.healed is None or not isinstance(verdict, Violated):
            return verdict
        without = self._judge(runs, outcomes, [0, 2, *noise])
        if isinstance(without, Needs):
            return without
        if isinstance(without, Violated) and without.evidence.kind == verdict.evidence.kind:
            return Holds("shows without the passes that are to blame as well")
        return verdict

    def with_disabled(self, disabled: frozenset[str]) -> "BuildPair":
        """Return the same pair with exactly these passes off in the faulty build."""
        return replace(self, faulty=replace(self.faulty, disabled=disabled))

    def with_sequence(self, sequence: tuple[str, ...]) -> "BuildPair":
        """Return the same pair with this pass sequence in the faulty build, and in the healed one."""
        healed = self.healed and replace(self.healed, sequence=sequence)
        return replace(self, faulty=replace(self.faulty, sequence=sequence), healed=healed)

    def healed_without(self, passes: frozenset[str]) -> "BuildPair":
        """Return the same pair, violated only as long as switching `passes` off heals it."""
        return replace(self, healed=replace(self.faulty, disabled=self.faulty.disabled | passes))

    def _judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome], places: list[int]) -> Verdict:
        if is_invalid(runs[0].case):
            return judge_invalid([runs[i] for i in places], [outcomes[i] for i in places])
        return judge_pair([runs[i] for i in places], [outcomes[i] for i in places], self.rule, self.narrowed)
