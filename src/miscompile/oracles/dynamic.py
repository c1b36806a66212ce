"""The oracle of symbolic sizes: a program compiled once must agree at every size with one compiled for that size.

A compiler that confuses a symbolic size with another (zero, one, the size of the first run, another symbol's) gives
wrong values, wrong shapes or an error at one of the sizes. A compiler may refuse symbolic sizes altogether.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from miscompile.core.case import Case
from miscompile.core.outcome import Crashed, Outcome, Raised, TimedOut
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence, Holds, Inconclusive, Needs, Verdict, Violated
from miscompile.oracles.instrumentation import NOT_NARROWED
from miscompile.oracles.judge import CompareRule, is_further, judge_pair
from miscompile.oracles.kinds import OracleContext, OracleKind, RuleOption, narrowed_between
from miscompile.oracles.pair import BuildPair, pair_of
from miscompile.transforms.catalogue import STATIC


@dataclass(frozen=True, slots=True)
class Dynamic:
    """Compares the optimised program with symbolic sizes with unoptimised programs for each set of sizes.

    Errors of the static program itself (an exception, types that ONNX does not infer) are left to other oracles,
    because symbolic sizes do not cause them.

    With probability `lesser_chance` there is a third build, which separates the errors of symbolic sizes from those of
    optimisation: the symbolic program without optimisation, or the static ones with it. `disabled` names the passes
    that stay off in this test; `narrowed` maps the types that the target computes in a narrower type by design.
    """

    target: str
    lesser_chance: float = 0.6
    rule: CompareRule = "strict"
    disabled: frozenset[str] = field(default_factory=frozenset)
    narrowed: Mapping[str, str] = field(default_factory=lambda: NOT_NARROWED)

    def plan(self, case: Case, rng: random.Random) -> tuple[Run, ...]:
        """Return the static reference run, the full run on the symbolic program, and perhaps another."""
        builds = [Build("off", transform=STATIC), Build("full", self.disabled)]
        if rng.random() < self.lesser_chance:
            builds.append(rng.choice((Build("off"), Build("full", self.disabled, transform=STATIC))))
        return tuple(Run(case, self.target, build) for build in builds)

    def judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        """Judge every other build against the reference; the first violation decides, then any inconclusive verdict."""
        further = [place for place, run in enumerate(runs) if is_further(run, self.target)]
        last: Verdict = Holds()
        for place in range(1, len(runs) - len(further)):
            if isinstance(outcomes[0], Raised) and not isinstance(outcomes[place], Crashed | TimedOut):
                last = Inconclusive("an error of the static build")
                continue
            chosen = [0, place, *further]
            verdict = judge_pair([runs[i] for i in chosen], [outcomes[i] for i in chosen], self.rule, self.narrowed)
            if isinstance(verdict, Violated) and verdict.evidence.rule == "declared":
                verdict = Inconclusive("undeclared types in the static build")
            if isinstance(verdict, Violated | Needs):
                return verdict
            if last == Holds() or isinstance(verdict, Inconclusive):
                last = verdict
        return last


def _hold(options: RuleOption, evidence: Evidence, context: OracleContext, facts: Mapping[str, Any]) -> BuildPair:
    """Return the pair of builds of a violation, judged as this oracle judges."""
    del facts
    rule, narrowed = options.rule or context.rule, narrowed_between(evidence, context)
    judged_by = Dynamic(evidence.faulty.target, rule=rule, narrowed=narrowed)
    return pair_of(evidence, rule, narrowed, judged_by)


def _make(options: RuleOption, context: OracleContext) -> Dynamic:
    target, rule = context.target, options.rule or context.rule
    return Dynamic(target, rule=rule, disabled=context.off(target), narrowed=context.narrowed(target))


KIND = OracleKind("dynamic", "one build with symbolic sizes against a build for every size", _hold, _make, RuleOption)
