"""Every combination of outcomes of two builds, and every rule that can decide between values."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_cases import FULL, OFF, case, full, pair_of_runs, values

from miscompile.core.case import Case, Port, Program
from miscompile.core.outcome import (
    Crashed,
    Outcome,
    OutOfMemory,
    Raised,
    Rejected,
    TimedOut,
    Unsupported,
    Values,
    status_of,
)
from miscompile.core.run import Run
from miscompile.core.verdict import Holds, Inconclusive, Needs, Verdict, Violated
from miscompile.oracles.judge import FIXED_THRESHOLD, CompareRule, is_noise, judge_pair
from miscompile.oracles.montecarlo import ROUNDS

GOOD = values([1.0, 2.0, 3.0])
OUTCOMES: dict[str, Outcome] = {
    "values": GOOD,
    "rejected": Rejected("compile", "no"),
    "unsupported": Unsupported("compile", "no kernel"),
    "raised": Raised("run", "Error", "bad"),
    "crashed": Crashed("compile", 11),
    "timedout": TimedOut("run", 10.0),
    "outofmemory": OutOfMemory("run", "2 GiB"),
}

# reference -> other -> what is said; `kind/faulty/held against`, with faulty and held against in off, full, -
TABLE: dict[str, dict[str, str]] = {
    "values": {
        "values": "holds",
        "rejected": "lawfully refused by one build",
        "unsupported": "exception/full/off",
        "raised": "exception/full/off",
        "crashed": "death/full/off",
        "timedout": "hang/full/off",
        "outofmemory": "memory/full/off",
    },
    "rejected": {
        **dict.fromkeys(OUTCOMES, "rejected"),
        "crashed": "death/full/-",
        "timedout": "hang/full/-",
    },
    "unsupported": {
        **dict.fromkeys(OUTCOMES, "unsupported"),
        "crashed": "death/full/-",
        "timedout": "hang/full/-",
    },
    "outofmemory": {
        **dict.fromkeys(OUTCOMES, "out of memory"),
        "crashed": "death/full/-",
        "timedout": "hang/full/-",
    },
    "raised": {**dict.fromkeys(OUTCOMES, "exception/off/-"), "values": "exception/off/full"},
    "crashed": {**dict.fromkeys(OUTCOMES, "death/off/-"), "values": "death/off/full"},
    "timedout": {**dict.fromkeys(OUTCOMES, "hang/off/-"), "values": "hang/off/full"},
}


def said(verdict: Verdict) -> str:
    """A verdict in a word, as in TABLE."""
    if isinstance(verdict, Violated):
        found = verdict.evidence
        held = found.reference.build.level if found.reference else "-"
        return f"{found.kind}/{found.faulty.build.level}/{held}"
    return verdict.reason if isinstance(verdict, Inconclusive) else type(verdict).__name__.lower()


def judge(reference: Outcome, *others: Outcome, item: Case | None = None, rule: CompareRule = "strict") -> Verdict:
    runs = [*pair_of_runs(item)]
    runs += [runs[0]] * (len(others) - 1)
    return judge_pair(runs, [reference, *others], rule)


@pytest.mark.parametrize("reference", OUTCOMES)
@pytest.mark.parametrize("other", OUTCOMES)
def test_every_combination_of_outcomes(reference: str, other: str) -> None:
    verdict = judge(OUTCOMES[reference], OUTCOMES[other])
    assert said(verdict) == TABLE[reference][other]
    if isinstance(verdict, Violated) and verdict.evidence.kind in ("death", "hang", "memory", "exception"):
        assert verdict.evidence.rule == "status"
        assert verdict.evidence.message


def test_an_error_on_inputs_that_may_not_suit_the_model_is_no_finding() -> None:
    item = replace(case(), recipe={"unproven": True})
    raised = OUTCOMES["raised"]
    assert said(judge(raised, raised, item=item)) == "the inputs may not suit the model"
    assert said(judge(raised, OUTCOMES["crashed"], item=item)) == "death/full/-"
    assert said(judge(GOOD, raised, item=item)) == "exception/full/off"


def test_the_table_has_every_kind_of_outcome() -> None:
    assert {status_of(outcome) for outcome in OUTCOMES.values()} == set(OUTCOMES)
    assert set(TABLE) == set(OUTCOMES)


def test_messages_say_what_happened() -> None:
    assert "signal 11 at compile" in message(judge(GOOD, Crashed("compile", 11)))
    assert "exited with 3" in message(judge(GOOD, Crashed("run", -3)))
    assert "no end of run within 10 s" in message(judge(GOOD, TimedOut("run", 10.0)))
    assert message(judge(GOOD, Raised("run", "KeyError", "'x'"))) == "KeyError at run: 'x'"
    assert message(judge(GOOD, Unsupported("compile", "no y"))) == "refused at compile by this build only: no y"


def message(verdict: Verdict) -> str:
    assert isinstance(verdict, Violated)
    return verdict.evidence.message


@pytest.mark.parametrize(
    ("item", "reference", "other", "kind", "rule"),
    [
        (case(), values([1, 2, 3]), values(None), "missing", "structure"),
        (case(), values([1, 2, 3]), values([1, 2]), "shape", "structure"),
        (case(), values([1, 2, 3]), values([1, 2, 3], dtype="float64"), "dtype", "structure"),
        (case(exact=True), values([1, 2, 3]), values([1, 2, 4]), "wrong", "exact"),
        (case("int32"), values([1, 2, 3], dtype="float32"), values([1, 2, 3]), "dtype", "declared"),
        (case(shape=(2,)), values([1, 2, 3]), values([1, 2, 3]), "shape", "declared"),
        (case(shape=(2,)), values([1, 2, 3]), Crashed("run", 11), "shape", "declared"),
    ],
)
def test_the_rule_that_decides(item: Case, reference: Outcome, other: Outcome, kind: str, rule: str) -> None:
    verdict = judge(reference, other, item=item)
    assert isinstance(verdict, Violated)
    assert (verdict.evidence.kind, verdict.evidence.rule, verdict.evidence.output) == (kind, rule, "y0")
    assert verdict.evidence.details["output"] == 0


def test_structure_goes_before_values_and_exact_outputs_before_inexact_ones() -> None:
    item = case(outputs=2)
    verdict = judge(values([1, 2, 3], [1, 2, 3]), values([1, 2, 9], None), item=item)
    assert said(verdict).startswith("missing")
    inexact, exact = item.program.outputs
    ports = (inexact, exact._replace(exact=True))
    mixed = Case(replace(item.program, outputs=ports), item.feeds)
    verdict = judge(values([1, 2, 3], [1, 2, 3]), values([1, 2, 9], [1, 2, 9]), item=mixed)
    assert isinstance(verdict, Violated)
    assert (verdict.evidence.output, verdict.evidence.rule) == ("y1", "exact")


def test_a_reference_that_is_not_finite_decides_nothing_about_values() -> None:
    wild = values([math.nan, 1, 2])
    assert said(judge(wild, values([0, 1, 2]))) == "reference not finite"
    assert said(judge(wild, wild)) == "holds"
    assert said(judge(wild, Crashed("run", 11))) == "death/full/off"


def test_the_last_places_are_rounding() -> None:
    eps = 2.0**-23
    assert judge(GOOD, values([1.0 + eps, 2.0, 3.0])) == Holds("within the last places")
    assert said(judge(GOOD, values([1.0 + 64 * eps, 2.0, 3.0]))) == "needs"
    assert said(judge(GOOD, values([1.0 + eps, 2.0, 3.0]), item=case(exact=True))) == "wrong/full/off"


@pytest.mark.parametrize(("off", "what"), [(0.5, "wrong/full/off"), (FIXED_THRESHOLD / 2, "holds")])
def test_the_fixed_threshold(off: float, what: str) -> None:
    verdict = judge(GOOD, values([1.0 + off, 2.0, 3.0]), rule="fixed")
    assert said(verdict) == what
    if isinstance(verdict, Violated):
        assert verdict.evidence.rule == "fixed"
        assert verdict.evidence.details["allowed"] == FIXED_THRESHOLD
        assert verdict.evidence.details["difference"] == pytest.approx(off, rel=1e-6)


def test_a_mismatch_asks_for_one_noise_run_of_the_reference_build() -> None:
    item = case()
    verdict, again = (judge(GOOD, values([1.0, 2.0, 3.5]), item=item) for _ in range(2))
    assert isinstance(verdict, Needs)
    assert isinstance(again, Needs)
    (run,) = verdict.runs
    assert (run.build, run.target, run.purpose) == (OFF, "toy", "judge")
    assert is_noise(run)
    assert not is_noise(Run(case(), "toy", FULL))
    assert len(run.case.feeds) == 1 + ROUNDS
    repeated = again.runs[0].case  # judging is pure, noise included
    assert repeated.program == run.case.program
    assert all(
        a.same(b)
        for one, two in zip(repeated.feeds, run.case.feeds, strict=True)
        for a, b in zip(one, two, strict=True)
    )


def noise(spread: float) -> Values:
    """Results of a noise twin that move by `spread`."""
    signs = [1.0, -1.0] * (ROUNDS // 2)
    rows = [full([1.0, 2.0, 3.0])] + [full(np.array([1.0, 2.0, 3.0]) + sign * spread) for sign in signs]
    return Values(tuple((row,) for row in rows))


@pytest.mark.parametrize(
    ("third", "what"),
    [
        (noise(0.5), "holds"),
        (noise(0.001), "wrong/full/off"),
        (noise(0.0), "wrong/full/off"),
        (noise(math.inf), "noise twin not comparable"),
        (Crashed("run", 11), "noise twin crashed"),
        (Raised("run", "E", "m"), "noise twin raised"),
        (TimedOut("run", 1), "noise twin timedout"),
    ],
)
def test_the_noise_run_decides(third: Outcome, what: str) -> None:
    verdict = judge(GOOD, values([1.0, 2.0, 3.5]), third)
    assert said(verdict) == what
    if isinstance(verdict, Violated):
        details = verdict.evidence.details
        assert verdict.evidence.rule == "monte-carlo"
        assert details["difference"] == 0.5
        assert math.isfinite(details["ratio"])
    if isinstance(verdict, Holds):
        assert verdict.note == "within rounding"


def test_a_program_that_cannot_be_read_has_no_noise_twin() -> None:
    port = Port("y", "float32", (3,))
    broken = Case(Program("onnx", b"\xff\xff", (port,), (port,)), ((full([1, 2, 3]),),))
    verdict = judge(GOOD, values([1.0, 2.0, 3.5]), item=broken)
    assert isinstance(verdict, Inconclusive)
    assert verdict.reason.startswith("no noise twin")


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=3, max_size=3))
def test_equal_results_always_hold(numbers: list[float]) -> None:
    assert judge(values(numbers), values(numbers)) == Holds()


@given(st.sampled_from(sorted(OUTCOMES)), st.sampled_from(sorted(OUTCOMES)))
def test_the_rule_changes_nothing_about_outcomes_without_values(reference: str, other: str) -> None:
    strict, fixed = (judge(OUTCOMES[reference], OUTCOMES[other], rule=rule) for rule in ("strict", "fixed"))
    assert said(strict) == said(fixed)
