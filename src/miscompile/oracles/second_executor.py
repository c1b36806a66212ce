"""The second executor: wrong results of an optimised model count only if another executor shows them as well.

A target that turns a model into another model, such as an optimiser, computes nothing itself. ONNX Runtime executes its
result, and a difference may be an error of one of the runtime's kernels, which the optimised model happens to need. So
after each violation the oracle asks for both builds once more under another executor, and judges these in the same way.
The check is a part of the judgement, and not of triage alone, so that reduction and bisection cannot slip from an error
of the optimiser to one of the executor.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from miscompile.core.outcome import Crashed, Outcome, Raised, TimedOut, Values
from miscompile.core.run import Run
from miscompile.core.verdict import Evidence, Inconclusive, Needs, Verdict, Violated
from miscompile.targets.registry import second_executor

PairJudge = Callable[[Sequence[Run], Sequence[Outcome]], Verdict]
"""Judges the second of several runs against the first one; further ones are Monte-Carlo runs."""

ONE_EXECUTOR = "only one executor shows it"
SILENT = "the second executor does not run the original program"
UNOPTIMISED = "the executor fails on the original program"


def is_seconding(run: Run, target: str) -> bool:
    """Tell whether `run` belongs to the second executor of `target`."""
    return bool(second_executor(target)) and run.target == second_executor(target)


def seconded(runs: Sequence[Run], outcomes: Sequence[Outcome], judge: PairJudge) -> Verdict:
    """Judge `outcomes[1]` against `outcomes[0]`; where the target has a second executor, both must show a violation.

    The first executor alone decides about errors of the optimiser itself, and where the second one runs the original
    program and not the optimised one. Wrong elements count only if the second one runs the original. Returns Needs
    with the runs of the second executor after a violation.
    """
    other = second_executor(runs[1].target)
    if not other:
        return judge(runs, outcomes)
    own = [place for place, run in enumerate(runs) if run.target != other]
    verdict = judge([runs[i] for i in own], [outcomes[i] for i in own])
    if not isinstance(verdict, Violated):
        return verdict
    if verdict.evidence.faulty.build.level == "off":
        return Inconclusive(UNOPTIMISED)
    if not _is_executed(outcomes[1]):
        return verdict
    others = {run.build: i for i, run in enumerate(runs) if run.target == other and "noise" not in run.case.recipe}
    if not all(run.build in others for run in runs[:2]):
        return Needs(tuple(replace(run, target=other, purpose="judge") for run in runs[:2]))
    noise = [i for i, run in enumerate(runs) if run.target == other and "noise" in run.case.recipe]
    places = [others[runs[0].build], others[runs[1].build], *noise]
    return _weighed(verdict.evidence, [runs[i] for i in places], [outcomes[i] for i in places], judge)


def _weighed(evidence: Evidence, runs: Sequence[Run], outcomes: Sequence[Outcome], judge: PairJudge) -> Verdict:
    """Return the verdict on `evidence` after the runs of the second executor."""
    if evidence.kind == "wrong" and not isinstance(outcomes[0], Values):
        return Inconclusive(SILENT)  # a reduction would seek programs that the second executor does not know
    if not all(isinstance(outcome, Values) for outcome in outcomes[:2]):
        return Violated(evidence)
    verdict = judge(runs, outcomes)
    if isinstance(verdict, Needs):
        return verdict
    if not isinstance(verdict, Violated):
        return Inconclusive(ONE_EXECUTOR)
    details: Mapping[str, str] = {"second_executor": runs[1].target}
    return Violated(replace(evidence, details={**evidence.details, **details}))


def _is_executed(outcome: Outcome) -> bool:
    """Tell whether the optimised program came as far as its execution."""
    if isinstance(outcome, Crashed | TimedOut | Raised):
        return outcome.stage != "compile" and not _is_ours(outcome)
    return isinstance(outcome, Values)


def _is_ours(outcome: Outcome) -> bool:
    """Tell whether the check of the declared types failed, which every executor shows."""
    return isinstance(outcome, Raised) and outcome.kind == "BrokenModelError"
