"""The disruptive oracle: any refusal is right; deaths, hangs and memory are not; values where the case says so."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from oracle_cases import FULL, OFF, values
from oracle_cases import case as valid_case

from miscompile.core.case import Case
from miscompile.core.outcome import Crashed, Observations, Outcome, OutOfMemory, Raised, Rejected, TimedOut, Unsupported
from miscompile.core.ports import Runner
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence, Holds, Verdict, Violated
from miscompile.graph.read import read
from miscompile.oracles.disruptive import Disruptive, is_invalid, judge_invalid
from miscompile.oracles.pair import BuildPair
from miscompile.triage.reduce.engine import reduce_case
from miscompile.triage.reduce.graphs import GraphDrafts
from miscompile.triage.script import write_script
from miscompile.triage.signature import signature_of

GOOD = values([1.0, 2.0, 3.0])
ERROR = Raised("compile", "Fail", "no")


def broken(counts: str = "acceptance", kind: str = "mixed", proof: str = "checker") -> Case:
    said = {"kind": kind, "detail": "operand B has type int32", "refusal": "B has inconsistent type"}
    return replace(valid_case(), recipe={"oracle": "disruptive", "broken": said, "proof": proof, "counts": counts})


def judged(case: Case, off: Outcome, full: Outcome) -> Verdict:
    return judge_invalid((Run(case, "toy", OFF), Run(case, "toy", FULL)), (off, full))


def word(verdict: Verdict) -> str:
    return verdict.evidence.kind if isinstance(verdict, Violated) else type(verdict).__name__


def test_both_builds_are_run_and_quarantined_passes_stay_off() -> None:
    runs = Disruptive("toy", frozenset("A")).plan(broken(), random.Random(0))
    assert [run.build for run in runs] == [OFF, Build("full", frozenset("A"))]


@pytest.mark.parametrize("counts", ["acceptance", "deaths", "compiled"])
@pytest.mark.parametrize("refusal", [ERROR, Rejected("compile", "m"), Unsupported("load", "m")])
def test_any_refusal_is_right(counts: str, refusal: Outcome) -> None:
    assert isinstance(judged(broken(counts), refusal, ERROR), Holds)


@pytest.mark.parametrize(
    ("outcome", "acceptance", "deaths", "compiled"),
    [
        (Crashed("compile", 11), "death", "death", "death"),
        (Crashed("run", -1), "death", "death", "Holds"),
        (TimedOut("compile", 9.0), "hang", "hang", "Holds"),
        (TimedOut("run", 9.0), "hang", "hang", "hang"),
        (OutOfMemory("compile"), "memory", "memory", "Holds"),
        (OutOfMemory("run"), "memory", "memory", "memory"),
        (OutOfMemory("run", "m", Observations(memory=9 << 30)), "memory", "memory", "memory"),
        (OutOfMemory("run", "m", Observations(memory=1 << 29)), "Holds", "Holds", "Holds"),
        (GOOD, "accepted", "Holds", "Holds"),
    ],
)
def test_what_counts(outcome: Outcome, acceptance: str, deaths: str, compiled: str) -> None:
    for counts, wanted in (("acceptance", acceptance), ("deaths", deaths), ("compiled", compiled)):
        assert word(judged(broken(counts), ERROR, outcome)) == wanted
        assert word(judged(broken(counts), outcome, ERROR)) == wanted


def test_a_death_comes_before_acceptance_and_the_build_as_shipped_is_blamed() -> None:
    verdict = judged(broken(), GOOD, Crashed("run", 8))
    assert isinstance(verdict, Violated)
    assert verdict.evidence.kind == "death"
    assert verdict.evidence.faulty.build == FULL
    assert verdict.evidence.reference is None
    assert "operand B has type int32" in verdict.evidence.message
    both = judged(broken(), GOOD, GOOD)
    assert isinstance(both, Violated)
    assert both.evidence.faulty.build == FULL


def test_two_builds_that_disagree_about_garbage_are_no_wrong_values() -> None:
    other = values([9.0, 9.0, 9.0])
    assert word(judged(broken("deaths"), GOOD, other)) == "Holds"


def test_a_pair_judges_invalid_cases_by_their_own_rules() -> None:
    pair = BuildPair("toy", OFF, FULL, judged_by=Disruptive("toy"))
    case = broken("deaths")
    runs = pair.plan(case, random.Random(0))
    assert isinstance(pair.judge(runs, (ERROR, ERROR)), Holds)
    assert word(pair.judge(runs, (ERROR, Crashed("run", 11)))) == "death"
    plain = BuildPair("toy", OFF, FULL)
    assert word(plain.judge(plain.plan(valid_case(), random.Random(0)), (ERROR, ERROR))) == "exception"
    assert is_invalid(case)
    assert not is_invalid(valid_case())


def accepted_evidence(case: Case) -> Evidence:
    verdict = judged(case, ERROR, GOOD)
    assert isinstance(verdict, Violated)
    return replace(verdict.evidence, faulty=Run(case, "onnxruntime", FULL))


def test_the_signature_is_operator_and_kind_of_constraint() -> None:
    case = broken()
    text = str(signature_of(accepted_evidence(case), GOOD, (), read(case.program.payload)))
    assert text == "onnxruntime:accepted:Relu with broken mixed"


def test_the_script_shows_that_the_model_is_refused_by_onnx_and_run_all_the_same() -> None:
    case = broken()
    script = write_script(case, accepted_evidence(case), GOOD)
    compile(script, "repro.py", "exec")
    assert "an invalid model is accepted and run" in script
    assert "onnx's checker refuses the model:" in script
    assert "accepts the model and runs it" in script
    assert "sys.exit(1)" in script


def test_a_death_of_what_only_a_page_forbids_asks_no_checker() -> None:
    case = broken("deaths", "contents", "runtime")
    verdict = judged(case, Crashed("run", 8), Crashed("run", 8))
    assert isinstance(verdict, Violated)
    evidence = replace(verdict.evidence, faulty=Run(case, "onnxruntime", FULL))
    script = write_script(case, evidence, Crashed("run", 8))
    compile(script, "repro.py", "exec")
    assert "check_model" not in script
    assert "kills this process" in script
    assert "refuses it" in script, "an error in place of the death is no bug"


def test_a_death_of_a_valid_program_is_not_blamed_on_the_program() -> None:
    verdict = judged(broken("deaths", "domain", "runtime"), Crashed("run", 8), Crashed("run", 8))
    assert isinstance(verdict, Violated)
    assert "the result is undefined" in verdict.evidence.message
    assert "invalid" not in verdict.evidence.message


class _Accepting:
    """A runner for which every program runs."""

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        return [GOOD for _ in runs]


def test_the_drafts_of_valid_programs_leave_invalid_ones_as_they_are() -> None:
    runner: Runner = _Accepting()
    case = broken()
    held = BuildPair("toy", OFF, FULL, judged_by=Disruptive("toy"))
    reduced = reduce_case(case, held, runner, random.Random(0), GraphDrafts(runner))
    assert reduced is not None
    assert reduced.case is case
    assert reduced.complete
    assert reduced.defined
    assert reduced.evidence.kind == "accepted"
