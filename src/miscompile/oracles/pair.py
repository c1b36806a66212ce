"""The build pair: one case, two builds, one judgement. Triage checks most findings with such a pair."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from miscompile.core.case import Case
from miscompile.core.outcome import Outcome
from miscompile.core.ports import Oracle
from miscompile.core.run import Build, Purpose, Run
from miscompile.core.verdict import Evidence, Holds, Needs, Verdict, Violated
from miscompile.oracles.instrumentation import NOT_NARROWED
from miscompile.oracles.judge import CompareRule, is_further, judge_pair
from miscompile.targets.derivatives import of_the_program
from miscompile.transforms.catalogue import alters


@dataclass(frozen=True, slots=True)
class BuildPair:
    """Oracle that compares build `faulty` of `target` with build `reference` of the same target, or of `against`.

    `judged_by` is the oracle that judges the two runs: the one that found the violation. Without it the values of both
    builds are compared by `rule` (`strict` picks the strictest comparison that applies); that needs a second round
    (Monte-Carlo runs) only after a mismatch. With `healed`, a build in which the guilty passes are off, the property
    is violated only if that build is not at fault, which prevents slippage of a reduction to another pass. `narrowed`
    maps the types that one of the targets computes in a narrower type by design.
    """

    target: str
    reference: Build
    faulty: Build
    rule: CompareRule = "strict"
    purpose: Purpose = "fuzz"
    healed: Build | None = None
    against: str = ""
    narrowed: Mapping[str, str] = field(default_factory=lambda: NOT_NARROWED)
    judged_by: Oracle | None = None

    def plan(self, case: Case, rng: random.Random) -> tuple[Run, ...]:
        """Return the reference run and the faulty run, and the healed run if there is one."""
        del rng
        builds = (self.faulty, *((self.healed,) if self.healed else ()))
        reference = Run(case, self.against or self.target, self.reference, self.purpose)
        return (reference, *(Run(case, self.target, build, self.purpose) for build in builds))

    def judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        """Judge the pair; further runs that a judgement asked for stand at the end."""
        further = [place for place, run in enumerate(runs) if is_further(run, self.target)]
        verdict = self._judge(runs, outcomes, [0, 1, *further])
        if self.healed is None or not isinstance(verdict, Violated):
            return verdict
        without = self._judge(runs, outcomes, [0, 2, *further])
        if isinstance(without, Needs):
            return without
        if isinstance(without, Violated) and without.evidence.kind == verdict.evidence.kind:
            return Holds("shows without the passes that are to blame as well")
        return verdict

    def with_faulty(self, build: Build) -> "BuildPair":
        """Return the same pair with another build at fault; the healed build follows it."""
        off = self.healed.disabled - self.faulty.disabled if self.healed else frozenset[str]()
        healed = replace(build, disabled=build.disabled | off) if self.healed else None
        return replace(self, faulty=build, healed=healed)

    def healed_without(self, passes: frozenset[str]) -> "BuildPair":
        """Return the same pair, violated only while the build without `passes` is not at fault."""
        return replace(self, healed=replace(self.faulty, disabled=self.faulty.disabled | passes))

    def _judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome], places: list[int]) -> Verdict:
        pair, results = [runs[i] for i in places], [outcomes[i] for i in places]
        if self.judged_by is not None:
            return self.judged_by.judge(pair, results)
        return judge_pair(pair, results, self.rule, self.narrowed)


def pair_of(
    evidence: Evidence, rule: CompareRule, narrowed: Mapping[str, str] = NOT_NARROWED, judged_by: Oracle | None = None
) -> BuildPair:
    """Return the pair of builds that `evidence` compares; the default reference is the unoptimised build.

    A transform that changes the results stays in both builds.
    """
    target, reference = evidence.faulty.target, evidence.reference
    against = "" if reference is None or reference.target == target else reference.target
    faulty = evidence.faulty.build
    kept = of_the_program(faulty.transform) if alters(faulty.transform) else None
    held = reference.build if reference else Build("off", transform=kept)
    if faulty == held and not against:
        faulty = Build("full", transform=kept)
    return BuildPair(target, held, faulty, rule, "confirm", None, against, narrowed, judged_by)
