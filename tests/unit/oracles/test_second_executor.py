"""Violations of a target with two executors count only if both show them."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from oracle_cases import FULL, OFF, case, values

from miscompile.core.outcome import Crashed, Outcome, Raised, Unsupported
from miscompile.core.run import Run
from miscompile.core.verdict import Holds, Inconclusive, Needs, Verdict, Violated
from miscompile.oracles.disruptive import judge_invalid
from miscompile.oracles.judge import judge_pair
from miscompile.oracles.second_executor import ONE_EXECUTOR, SILENT, UNOPTIMISED
from miscompile.targets.registry import second_executor

TARGET = "onnxoptimizer"
OTHER = "onnxoptimizer{executor=reference}"
GOOD, BAD = values([1.0, 2.0, 3.0]), values([1.0, 2.0, 9.0])


def runs() -> list[Run]:
    item = case()
    return [Run(item, TARGET, OFF), Run(item, TARGET, FULL)]


def judged(*outcomes: Outcome) -> Verdict:
    """Judge a pair of outcomes, and those of the second executor when the judgement asks for it."""
    planned = runs()
    while True:
        verdict = judge_pair(planned, outcomes[: len(planned)], "fixed")
        if not isinstance(verdict, Needs):
            return verdict
        planned += verdict.runs


def test_the_second_executor_is_the_other_value_of_the_option() -> None:
    assert second_executor(TARGET) == OTHER
    assert second_executor(OTHER) == "onnxoptimizer{executor=onnxruntime}"
    assert second_executor("onnxruntime") == ""


def test_a_difference_asks_for_both_builds_under_the_other_executor() -> None:
    planned = runs()
    verdict = judge_pair(planned, [GOOD, BAD], "fixed")
    assert verdict == Needs(tuple(replace(run, target=OTHER, purpose="judge") for run in planned))


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ((GOOD, BAD), "violated"),
        ((GOOD, GOOD), ONE_EXECUTOR),
        ((BAD, BAD), ONE_EXECUTOR),
        ((Unsupported("run", "no such operator"), Unsupported("run", "no such operator")), SILENT),
        ((Unsupported("run", "no such operator"), GOOD), SILENT),
        ((GOOD, Unsupported("run", "no such operator")), "violated"),
        ((GOOD, Raised("run", "ValueError", "shapes")), "violated"),
    ],
)
def test_wrong_values_count_where_the_second_executor_agrees_or_is_silent(
    others: Sequence[Outcome], expected: str
) -> None:
    verdict = judged(GOOD, BAD, *others)
    if expected == "violated":
        assert isinstance(verdict, Violated)
        assert (verdict.evidence.faulty.target, verdict.evidence.faulty.build) == (TARGET, FULL)
    else:
        assert verdict == Inconclusive(expected)


def test_an_error_of_the_optimiser_needs_no_second_executor() -> None:
    assert isinstance(judged(GOOD, Raised("compile", "RuntimeError", "assertion")), Violated)
    assert isinstance(judged(GOOD, Crashed("compile", 11)), Violated)
    assert isinstance(judged(GOOD, Raised("run", "BrokenModelError", "declared type")), Violated)


def test_an_error_of_one_kernel_does_not_count() -> None:
    failure = Raised("run", "RuntimeException", "Non-zero status code")
    assert judged(GOOD, failure, GOOD, GOOD) == Inconclusive(ONE_EXECUTOR)
    assert isinstance(judged(GOOD, failure, GOOD, failure), Violated)


def test_a_failure_of_the_original_program_is_not_the_optimisers() -> None:
    assert judged(Raised("run", "Fail", "kernel"), GOOD) == Inconclusive(UNOPTIMISED)


def test_an_invalid_program_blames_the_optimiser_only_for_its_own_death() -> None:
    dead, alive = Crashed("compile", 11), Crashed("run", 6)
    assert isinstance(judge_invalid(runs(), [Unsupported("compile", "no"), dead]), Violated)
    assert judge_invalid(runs(), [alive, alive]) == Inconclusive(UNOPTIMISED)
    assert judge_invalid(runs(), [GOOD, GOOD]) == Inconclusive(UNOPTIMISED)


def test_equal_values_need_one_round() -> None:
    assert judge_pair(runs(), [GOOD, GOOD], "strict") == Holds()
