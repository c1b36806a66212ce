"""What a lane makes of a violation: attribution, novelty, and the finding that it hands over."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "targets" / "toy"))

from toy_bench import InProcessRunner
from toy_faults import CASES

from miscompile.base.specs import Spec
from miscompile.core.case import Case, Program
from miscompile.core.examination import examine
from miscompile.core.finding import Signature
from miscompile.core.outcome import Crashed, Outcome, Raised, Values
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence, FindingKind, Violated
from miscompile.findings import folder
from miscompile.oracles.kinds import OracleContext
from miscompile.oracles.pair import BuildPair, pair_of
from miscompile.triage.attribution import (
    MOST_SIGHTINGS,
    MOST_UNATTRIBUTED,
    MOST_UNLIKE,
    Confirmer,
    node_count,
    stored_property,
    to_stored,
)
from miscompile.triage.signature import symptom_of

OFF, FULL = Build("off"), Build("full")


class FakePool(InProcessRunner):
    """The toy in this process, with the pool's further methods; counts how often it was asked for fresh workers."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self.renewed = 0

    def fresh(self) -> None:
        self.renewed += 1

    def confirm(self, run: Run, times: int = 3) -> list[Outcome]:
        return [self.run([run])[0] for _ in range(times)]


class Dying(FakePool):
    """Dies in every optimised build, `times` times; behaves afterwards."""

    def __init__(self, times: int) -> None:
        super().__init__("toy")
        self.left = times

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        found: list[Outcome] = []
        for one, outcome in zip(runs, super().run(runs), strict=True):
            dies = one.build.level == "full" and self.left > 0
            self.left -= dies
            found.append(Crashed("compile", 11) if dies else outcome)
        return found


def confirmer(pool: Any, seed: int = 1) -> Confirmer:
    return Confirmer(pool, OracleContext(("toy",)), seed)


def violation(name: str, target: str) -> tuple[Case, Evidence]:
    case = CASES[name]
    runs = (Run(case, target, OFF), Run(case, target, FULL))
    return case, Evidence("wrong", "exact", "m", runs[1], runs[0], "a")


def signature(kind: FindingKind = "wrong", culprits: Sequence[str] = (), text: str = "t", stage: str = "") -> Signature:
    return Signature("toy", kind, stage, tuple(culprits), text)


@pytest.mark.parametrize(
    ("name", "guilty"),
    [
        ("sub_commutes", ("OperandOrdering",)),
        ("reshape_merge_zero", ("ReshapeMerging",)),
        ("bias_inside_activation", ("ActivationFusion", "MatMulAddFusion")),
    ],
)
def test_a_violation_is_repeated_and_attributed(name: str, guilty: tuple[str, ...]) -> None:
    target = f"toy{{bugs={name}}}"
    pool = FakePool(target)
    case, evidence = violation(name, target)
    confirmed = confirmer(pool).investigate(*_typed(case, evidence))
    assert confirmed is not None
    assert confirmed.signature.culprits == guilty
    assert confirmed.signature.target == "toy"
    assert pool.renewed == 1


def test_culprits_of_the_same_symptom_are_tried_first() -> None:
    class Counting(FakePool):
        """Counts what it is asked."""

        asked = 0

        def run(self, runs: Sequence[Run]) -> list[Outcome]:
            self.asked += len(runs)
            return super().run(runs)

    pool = Counting("toy{bugs=bias_inside_activation}")
    case, evidence = _typed(*violation("bias_inside_activation", "toy{bugs=bias_inside_activation}"))
    investigator, asked = confirmer(pool), []
    for _ in range(2):
        before = pool.asked
        confirmed = investigator.investigate(case, evidence)
        assert confirmed is not None
        assert confirmed.signature.culprits == ("ActivationFusion", "MatMulAddFusion")
        asked.append(pool.asked - before)
    assert asked[1] < asked[0]


def test_a_familiar_message_is_mostly_taken_for_the_bug_that_it_always_was() -> None:
    """Here no violation repeats, so that a search gives None."""
    case, evidence = _typed(*violation("sub_commutes", "toy"))
    raised, bug = Raised("compile", "Error", "the buffer is too small"), signature(culprits=["ActivationFusion"])
    evidence = replace(evidence, kind="exception")
    other = replace(evidence, faulty=replace(evidence.faulty, build=replace(FULL, transform=Spec("functions"))))

    def searched(held: Evidence, sightings: int) -> int:
        """Return in how many of 100 lanes the bug's culprits are searched for."""
        found = []
        for seed in range(100):
            investigator = confirmer(FakePool("toy"), seed)
            investigator.traced["toy", "", symptom_of(evidence, raised)] = [bug] * sightings
            found.append(investigator.investigate(case, held, raised))
        assert all(one is None or one.signature == bug for one in found)
        return found.count(None)

    assert 0 < searched(evidence, MOST_SIGHTINGS) < 20
    assert searched(evidence, MOST_SIGHTINGS - 1) == 100
    assert searched(other, MOST_SIGHTINGS) == 100


def _typed(case: Case, evidence: Evidence) -> tuple[Case, Evidence]:
    """The case with ports that say what the unoptimised build gives."""
    (seen,) = InProcessRunner("toy").run([Run(case, "toy", OFF)])
    assert isinstance(seen, Values)
    ports = tuple(
        type(port)(port.name, value.dtype, value.shape)
        for port, value in zip(case.program.outputs, seen.results[0], strict=True)
        if value is not None
    )
    program = Program("onnx", case.program.payload, case.program.inputs, ports)
    typed = Case(program, case.feeds)
    target = evidence.faulty.target
    return typed, Evidence("wrong", "exact", "m", Run(typed, target, FULL), Run(typed, target, OFF), "a")


def test_what_does_not_repeat_is_no_violation() -> None:
    case, evidence = _typed(*violation("sub_commutes", "toy"))
    assert confirmer(FakePool("toy")).investigate(case, evidence) is None


@pytest.mark.parametrize(("times", "confirmedd"), [(0, False), (1, False), (2, False), (1000, True)])
def test_a_death_must_repeat_three_times(times: int, confirmedd: bool) -> None:
    case, evidence = _typed(*violation("sub_commutes", "toy"))
    assert (confirmer(Dying(times)).investigate(case, evidence) is not None) is confirmedd


def test_a_signature_is_handed_over_a_few_times() -> None:
    known = confirmer(FakePool("toy"))
    one, other = signature(culprits=("A",), text=""), signature(culprits=("B",), text="")
    assert [known.is_new(one) for _ in range(5)] == [True, True, True, False, False]
    assert known.is_new(other)


def test_findings_without_culprit_are_handed_over_a_few_times_only() -> None:
    known = confirmer(FakePool("toy"))
    fresh = [known.is_new(signature(text=f"graph {number}")) for number in range(MOST_UNATTRIBUTED + 3)]
    assert fresh == [True] * MOST_UNATTRIBUTED + [False] * 3
    unattributed = [known.is_new(signature(text=f"other {number}"), most=MOST_UNLIKE) for number in range(70)]
    assert unattributed == [True] * MOST_UNLIKE + [False] * (70 - MOST_UNLIKE)
    assert known.is_new(signature("death", text="signal 11", stage="run"))
    exceptions = [known.is_new(signature("exception", text=f"message {number}")) for number in range(10)]
    assert all(exceptions)


def test_the_pair_of_builds_is_stored_and_read_back(tmp_path: Path) -> None:
    case, evidence = _typed(*violation("sub_commutes", "toy{bugs=sub_commutes}"))
    disabled = frozenset({"DeadCode"})
    found = Evidence("wrong", "exact", "m", Run(case, "toy{bugs=sub_commutes}", Build("full", disabled)),
                     evidence.reference, "a")  # fmt: skip
    stored = to_stored(found, signature(), case, {"numpy": "2"}, OracleContext(("toy",)), test=5)
    folder.save(tmp_path, stored)
    again = folder.load(tmp_path, stored.finding.identifier)
    pair = stored_property(again, OracleContext(("toy",)))
    assert isinstance(pair, BuildPair)
    assert (pair.reference, pair.faulty, pair.target) == (OFF, Build("full", disabled), "toy{bugs=sub_commutes}")
    assert pair.purpose == "confirm"
    assert again.finding.facts["test"] == 5
    assert again.finding.facts["nodes"] == node_count(case) == 1
    assert again.status == "pending"


def test_without_a_reference_the_unoptimised_build_stands_in() -> None:
    case = CASES["sub_commutes"]
    assert pair_of(Evidence("death", "status", "m", Run(case, "toy", FULL)), "strict").reference == OFF
    both = pair_of(Evidence("death", "status", "m", Run(case, "toy", OFF)), "strict")
    assert (both.reference, both.faulty) == (OFF, FULL)


def test_an_unreadable_program_has_no_nodes() -> None:
    assert node_count(Case(Program("onnx", b"\xff\xff\xff", (), ()), ((),))) == 0


def test_a_finding_examined_again_shows() -> None:
    target = "toy{bugs=sub_commutes}"
    case, evidence = _typed(*violation("sub_commutes", target))
    stored = to_stored(evidence, signature(), case, {}, OracleContext(("toy",)), test=0)
    seen = examine(
        stored.finding.case,
        stored_property(stored, OracleContext(("toy",))),
        FakePool(target),
        __import__("random").Random(0),
    )
    assert isinstance(seen.verdict, Violated)
