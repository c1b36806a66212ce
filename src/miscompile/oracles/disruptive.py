"""The disruptive oracle: the outcomes that a deliberately invalid program must not have.

Any error or refusal is right (HIRFUZZ, section 5.4, reports crashes alone). Deaths, hangs and exhausted memory are
violations for every program. Values are a violation where the recipe counts acceptance.

A case's recipe describes the operator (`op`), its `broken` rule (the `kind`, the `place` in the call, a `detail` for
people, the `refusal` that proves it), the sort of `proof`, and the violations that it `counts`:

- `acceptance`: deaths, hangs, memory, and values;
- `deaths`: the same without values, because compilers accept such programs on purpose, or cannot detect the error;
- `compiled`: deaths of a signal, and hangs and memory of the compiled program alone, because the compiler got a program
  that was made from the model outside the compiler.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from miscompile.core.case import Case
from miscompile.core.outcome import Crashed, Outcome, OutOfMemory, TimedOut, Values, status_of
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence, Holds, Inconclusive, Verdict, Violated
from miscompile.oracles.judge import bad_build
from miscompile.oracles.kinds import NoOptions, OracleContext, OracleKind
from miscompile.oracles.pair import BuildPair, pair_of
from miscompile.oracles.second_executor import UNOPTIMISED
from miscompile.targets.registry import second_executor

ORACLE = "disruptive"
"""The name of this oracle in recipes."""

RULE = "invalid"
"""The rule that evidence of this oracle names."""

INVALID, UNDEFINED = "the program is invalid", "the result is undefined"
"""How the message of evidence names the broken rule."""

GROWN = 2 << 30
"""Peak memory of the process, in bytes, from which OutOfMemory counts: a refused request for a senseless size is an
error like any other."""


@dataclass(frozen=True, slots=True)
class Disruptive:
    """Builds invalid programs on a target, without optimisation and with all of it but the `disabled` passes."""

    target: str
    disabled: frozenset[str] = field(default_factory=frozenset)

    def plan(self, case: Case, rng: random.Random) -> tuple[Run, ...]:
        """Return the unoptimised and the optimised run."""
        del rng
        return (Run(case, self.target, Build("off")), Run(case, self.target, Build("full", self.disabled)))

    def judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        """Judge by status alone; see `judge_invalid`."""
        return judge_invalid(runs, outcomes)


def is_invalid(case: Case) -> bool:
    """Tell whether a case is invalid on purpose, so that the rules for valid programs do not hold."""
    return case.recipe.get("oracle") == ORACLE


def judge_invalid(runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
    """Judge the runs of one invalid program: fatal outcomes come first, then values.

    The runs are not compared, so the evidence has no reference. Of several runs that accept the program, the last one
    is blamed, because its build is the default of the compiler.
    """
    recipe = runs[0].case.recipe
    counts = str(recipe.get("counts", "deaths"))
    if second_executor(runs[-1].target):  # what runs the result is to blame for all that happens after the compilation
        counts = "deaths"
        if any(
            getattr(outcome, "stage", "run") != "compile" or run.build.level == "off"
            for run, outcome in zip(runs, outcomes, strict=True)
            if _is_fatal(outcome, counts)
        ) or isinstance(outcomes[-1], Values):
            return Inconclusive(UNOPTIMISED)
    for run, outcome in zip(runs, outcomes, strict=True):
        if _is_fatal(outcome, counts):
            return _violated(bad_build(run, None, outcome), recipe)
    accepting = [run for run, outcome in zip(runs, outcomes, strict=True) if isinstance(outcome, Values)]
    if accepting and counts == "acceptance":
        detail = recipe.get("broken", {}).get("detail", "invalid program")
        message = f"an invalid program is accepted and run: {detail}"
        return _violated(Violated(Evidence("accepted", RULE, message, accepting[-1])), recipe)
    return Holds("accepted" if accepting else f"refused: {status_of(outcomes[-1])}")


def _is_fatal(outcome: Outcome, counts: str) -> bool:
    if isinstance(outcome, OutOfMemory) and 0 < outcome.observations.memory < GROWN:
        return False
    if counts != "compiled":
        return isinstance(outcome, Crashed | TimedOut | OutOfMemory)
    if isinstance(outcome, Crashed):
        return outcome.signal > 0
    return isinstance(outcome, TimedOut | OutOfMemory) and outcome.stage == "run"


def _violated(verdict: Verdict, recipe: Any) -> Verdict:  # noqa: ANN401 - JSON values
    """Name the rule, and record the broken rule in the evidence for scripts, signatures and reports."""
    if not isinstance(verdict, Violated):
        return verdict
    found, broken = verdict.evidence, recipe.get("broken", {})
    details = {
        "broken": broken.get("kind", ""),
        "detail": broken.get("detail", ""),
        "proof": recipe.get("proof", ""),
        "refusal": broken.get("refusal", ""),
    }
    fault = UNDEFINED if details["broken"] == "domain" else INVALID
    cause = "" if found.kind == "accepted" else f"; {fault}: {details['detail']}"
    return Violated(Evidence(found.kind, RULE, found.message + cause, found.faulty, None, "", details))


def _hold(options: NoOptions, evidence: Evidence, context: OracleContext, facts: Mapping[str, Any]) -> BuildPair:
    """Return the unoptimised and the faulty build, judged as this oracle judges."""
    del options, facts
    return pair_of(evidence, context.rule, judged_by=Disruptive(evidence.faulty.target))


def _make(options: NoOptions, context: OracleContext) -> Disruptive:
    del options
    return Disruptive(context.target, disabled=context.off(context.target))


KIND = OracleKind("disruptive", "invalid programs must be refused, not crash the compiler", _hold, _make)
