"""The oracle of votes: kernels of one compiler against other runtimes, none of which is ever accused."""

import random
from collections.abc import Sequence

import pytest
from oracle_cases import case, values

from miscompile.core.outcome import Crashed, Outcome, Raised, Unsupported
from miscompile.core.run import Build
from miscompile.core.verdict import Evidence, Holds, Inconclusive, Needs, Verdict, Violated
from miscompile.oracles.differential import AgainstMajority, Differential
from miscompile.oracles.judge import is_noise
from miscompile.oracles.majority import REFERENCE
from miscompile.oracles.votes import OPTIMISED, UNSURE, AgainstVotes, Votes

OWN, OTHER = "toy{bugs=none}", "toy"
GOOD, BAD = values([1.0, 2.0, 3.0]), values([1.0, 2.0, 9.0])
FAILS = Raised("run", "Error", "no")


def votes(*, plain: bool = True) -> Votes:
    return Votes(OWN, (OTHER,), Differential((OWN,), (OTHER, REFERENCE)), plain)


def drawn(other: str) -> random.Random:
    """Return a generator that draws the runtime `other` to run beside the target."""
    seed = next(seed for seed in range(99) if random.Random(seed).choice((OTHER, REFERENCE)) == other)
    return random.Random(seed)


def judge(first: Sequence[Outcome], off: Outcome, reference: Outcome, *, plain: bool = True) -> Verdict:
    """Judge the runs of OWN and OTHER, and answer whatever the oracle asks for then."""
    oracle, item = votes(plain=plain), case()
    runs, outcomes = list(oracle.plan(item, drawn(OTHER))), list(first)
    verdict = oracle.judge(runs, outcomes)
    while isinstance(verdict, Needs):
        answers = {OWN: off, OTHER: first[1], REFERENCE: reference}
        asked = verdict.runs
        assert not {(run.target, run.build, is_noise(run)) for run in asked} & {
            (run.target, run.build, is_noise(run)) for run in runs
        }
        outcomes += [
            values([1.0, 2.0, 3.0], *([1.0, 2.0, 3.0],) * 8) if is_noise(one) else answers[one.target] for one in asked
        ]
        runs += asked
        verdict = oracle.judge(runs, outcomes)
    return verdict


def test_the_optimised_build_runs_beside_one_of_the_runtimes() -> None:
    runs = votes().plan(case(), drawn(OTHER))
    assert [(run.target, run.build) for run in runs] == [(OWN, Build()), (OTHER, Build())]
    _, run = votes().plan(case(), drawn(REFERENCE))
    assert (run.target, run.build) == (REFERENCE, Build("off")), "level full is onnx's own evaluator"
    assert judge([GOOD, GOOD], GOOD, GOOD) == Holds()


def test_a_result_that_both_builds_share_and_the_reference_contradicts_is_a_bug() -> None:
    verdict = judge([BAD, GOOD], BAD, GOOD)
    assert isinstance(verdict, Violated)
    assert verdict.evidence.faulty.target == OWN


def test_a_dispute_with_the_reference_alone_is_left_to_the_other_implementations() -> None:
    oracle, item = votes(), case()
    runs = oracle.plan(item, drawn(REFERENCE))
    verdict = oracle.judge(runs, [BAD, GOOD])
    assert isinstance(verdict, Needs)
    assert {run.target for run in verdict.runs} == {OWN, OTHER}, "the reference has run"
    answers: dict[str, Outcome] = {OWN: BAD, OTHER: FAILS, REFERENCE: GOOD}
    noise = values([1.0, 2.0, 3.0], *([1.0, 2.0, 3.0],) * 8)
    outcomes = [noise if is_noise(run) else answers[run.target] for run in verdict.runs]
    assert oracle.judge((*runs, *verdict.runs), [BAD, GOOD, *outcomes]) == Inconclusive("no majority")


def test_what_the_unoptimised_build_does_right_is_for_other_checks() -> None:
    assert judge([BAD, GOOD], GOOD, GOOD) == Inconclusive(OPTIMISED)
    assert judge([FAILS, GOOD], GOOD, GOOD) == Inconclusive(OPTIMISED)


def test_another_runtime_alone_proves_nothing() -> None:
    assert isinstance(judge([BAD, GOOD], BAD, Unsupported("run", "no")), Inconclusive)
    assert judge([FAILS, GOOD], FAILS, Unsupported("run", "no")) == Inconclusive(UNSURE)


@pytest.mark.parametrize("other", [BAD, FAILS, Crashed("run", 11)])
def test_another_runtime_is_never_accused(other: Outcome) -> None:
    assert not isinstance(judge([GOOD, other], GOOD, GOOD), Violated)


@pytest.mark.parametrize("plain", [True, False])
def test_an_error_of_all_builds_is_a_bug_where_the_reference_runs_the_program(plain: bool) -> None:
    verdict = judge([FAILS, GOOD], FAILS, GOOD, plain=plain)
    assert isinstance(verdict, Violated)
    assert (verdict.evidence.kind, verdict.evidence.faulty.target) == ("exception", OWN)


def test_the_property_of_an_error_needs_the_reference_too() -> None:
    held = AgainstVotes(AgainstMajority(OWN, Build(), (OTHER,)))
    runs = held.plan(case(), random.Random(0))
    assert [run.target for run in runs] == [OTHER, OWN]
    first = held.judge(runs, [GOOD, FAILS])
    assert isinstance(first, Needs)
    assert [run.target for run in first.runs] == [REFERENCE]
    assert held.judge([*runs, *first.runs], [GOOD, FAILS, FAILS]) == Inconclusive(UNSURE)
    last = held.judge([*runs, *first.runs], [GOOD, FAILS, GOOD])
    assert isinstance(last, Violated)
    assert isinstance(last.evidence, Evidence)
    assert held.with_faulty(Build("off")).faulty == Build("off")


def test_another_implementation_that_fails_does_not_end_the_vote() -> None:
    third = "toy{bugs=all}"
    held = AgainstVotes(AgainstMajority(OWN, Build(), (REFERENCE, third, OTHER)))
    runs = held.plan(case(), random.Random(0))
    asked = held.judge(runs, [GOOD, BAD])
    assert isinstance(asked, Needs)
    answers: dict[str, Outcome] = {OWN: BAD, OTHER: GOOD, REFERENCE: GOOD, third: FAILS}
    noise = values([1.0, 2.0, 3.0], *([1.0, 2.0, 3.0],) * 8)
    outcomes = [noise if is_noise(run) else answers[run.target] for run in asked.runs]
    verdict = held.judge([*runs, *asked.runs], [GOOD, BAD, *outcomes])
    assert isinstance(verdict, Violated)
    assert verdict.evidence.faulty.target == OWN
