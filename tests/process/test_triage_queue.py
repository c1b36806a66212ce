"""The triage queue: a pending finding comes back reduced, attributed and confirmed by its own script."""

import contextlib
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "targets" / "toy"))

from toy_bench import case, node

from miscompile.core.case import Case, Port, Program
from miscompile.core.finding import Signature
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence
from miscompile.execution.limits import Limits
from miscompile.findings import folder
from miscompile.findings.folder import Stored
from miscompile.findings.store import Campaign, Store
from miscompile.oracles.kinds import OracleContext
from miscompile.triage.attribution import to_stored
from miscompile.triage.predicate import told_apart
from miscompile.triage.queue import MOST_TRIES, TriageAnswer, TriageQueue
from miscompile.triage.recognition import with_variant
from miscompile.triage.settings import TriageSettings

pytestmark = pytest.mark.process

TARGET = "toy{bugs=sub_commutes}"


def pending(test: int) -> Stored:
    """A finding of five operators of which one is to blame; `test` makes it another case."""
    made = case(
        [
            node("Relu", "x", "a"),
            node("Neg", "w", "b"),
            node("Sub", "b a", "c"),
            node("Sin", "c", "d"),
            node("Concat", "c d", "y", axis=0),
        ],
        {"x": np.array([1, 2, 3 + test], np.float32), "w": np.array([4, 5, 6], np.float32)},
        "y",
    )
    program = Program("onnx", made.program.payload, made.program.inputs, (Port("y", "float32", (6,)),))
    known = Case(program, made.feeds)
    evidence = Evidence(
        "wrong", "monte-carlo", "m", Run(known, TARGET, Build("full")), Run(known, TARGET, Build("off")), "y"
    )
    return to_stored(
        evidence,
        Signature("toy", "wrong", "", (), "t"),
        known,
        {"numpy": np.__version__},
        OracleContext((TARGET,)),
        test=test,
    )


def test_a_finding_tells_its_phases_and_sizes(tmp_path: Path) -> None:
    queue = TriageQueue(settings(tmp_path))
    try:
        identifier = put(tmp_path, queue, pending(0))
        wait(queue, 1)
        steps = queue.steps()
    finally:
        queue.close()
    assert {step.identifier for step in steps} == {identifier}
    assert [step.phase for step in steps][:4] == ["repeating", "bisecting", "reducing", "bisecting"]
    assert str(next(step for step in steps if step.phase == "confirming")) == f"{identifier}: confirming, 5 -> 1 node"


def settings(out: Path, target: str = TARGET) -> TriageSettings:
    return TriageSettings(out, (target,), limits=Limits(seconds=5.0), script_seconds=60.0)


def put(out: Path, queue: TriageQueue, stored: Stored) -> str:
    """Write a pending finding and submit it."""
    folder.save(out, stored)
    queue.submit(stored.finding.identifier)
    return stored.finding.identifier


def wait(queue: TriageQueue, count: int, seconds: float = 60) -> list[TriageAnswer]:
    answers: list[TriageAnswer] = []
    end = time.monotonic() + seconds
    while len(answers) < count:
        assert time.monotonic() < end, "the queue does not answer"
        answers += queue.collect()
        time.sleep(0.02)
    return answers


def test_a_finding_is_reduced_attributed_and_confirmed(tmp_path: Path) -> None:
    queue = TriageQueue(settings(tmp_path))
    try:
        found, broken = pending(0), pending(1)
        program = Program("onnx", b"\xff\xff", broken.finding.case.program.inputs, broken.finding.case.program.outputs)
        unreadable = Case(program, broken.finding.case.feeds)
        put(tmp_path, queue, found)
        put(tmp_path, queue, Stored(replace(broken.finding, identifier="wrong-0", case=unreadable)))
        assert queue.open == 2
        first, second = wait(queue, 2)
        assert queue.open == 0
    finally:
        queue.close()
    assert first.problem == ""
    stored = folder.load(tmp_path, first.identifier)
    assert stored.status == "confirmed"
    assert stored.finding.identifier == found.finding.identifier
    assert stored.finding.property.signature.culprits == ("OperandOrdering",)
    facts = stored.finding.facts
    assert (facts["nodes"], facts["original_nodes"], facts["reproduced"], facts["test"]) == (1, 5, True, 0)
    assert stored.original is not None
    assert stored.original.program == found.finding.case.program
    compile(stored.script, "repro.py", "exec")
    assert folder.load(tmp_path, second.identifier).status != "confirmed"


@pytest.mark.slow
@pytest.mark.parametrize("predicate", [True, False])
def test_a_duplicate_of_a_triaged_finding_needs_no_script(tmp_path: Path, predicate: bool) -> None:
    queue = TriageQueue(settings(tmp_path))
    with Store.open(tmp_path) as store:
        store.begin(Campaign(TARGET, 0, {}, {}, 0.0))
        try:
            put(tmp_path, queue, pending(0))
            (answer,) = wait(queue, 1)
            first = store.settle(answer.identifier, told_apart)
            assert first is not None
            facts = {name: value for name, value in first.finding.facts.items() if predicate or name != "predicate"}
            folder.save(tmp_path, replace(first, finding=replace(first.finding, facts=facts)))
            put(tmp_path, queue, pending(1))
            (answer,) = wait(queue, 1)
            assert (answer.problem, answer.duplicate) == ("", True)
            second = folder.load(tmp_path, answer.identifier)
            assert store.settle(answer.identifier, told_apart) is None
        finally:
            queue.close()
    assert (first.status, second.status, second.script) == ("confirmed", "pending", "")
    assert first.finding.property.signature == second.finding.property.signature
    if predicate:
        assert second.original is None, "its predicate recognises it before it is reduced"
    else:
        assert second.finding.facts["predicate"]["nodes"]
        assert with_variant(first, second).status == "confirmed"


def test_a_violation_that_does_not_show_is_unconfirmed(tmp_path: Path) -> None:
    queue = TriageQueue(settings(tmp_path, "toy"))
    try:
        stored = pending(0)
        held = type(stored.finding.property)("optimisation", "toy", stored.finding.property.signature)
        finding = type(stored.finding)("wrong-1", held, stored.finding.case, "m", stored.finding.facts)
        put(tmp_path, queue, Stored(finding))
        (answer,) = wait(queue, 1)
    finally:
        queue.close()
    assert folder.load(tmp_path, answer.identifier).status == "unconfirmed"
    assert answer.slippages == ()


def test_hangs_and_then_accepted_invalid_programs_wait_for_all_others(tmp_path: Path) -> None:
    queue = TriageQueue(settings(tmp_path))
    order = ["accepted-0000000001", "accepted-0000000002", "hang-0000000003", "wrong-0000000004"]
    try:
        for identifier in order:
            queue.submit(identifier)
        answers = [answer.identifier for answer in wait(queue, 4)]
    finally:
        queue.close()
    assert sorted(answers) == order
    assert answers.index(order[3]) < answers.index(order[2]) < answers.index(order[1])  # a worker had the first at once


@pytest.mark.slow
def test_closing_leaves_what_was_not_begun(tmp_path: Path) -> None:
    queue = TriageQueue(settings(tmp_path))
    for test in range(4):
        put(tmp_path, queue, pending(test))
    queue.close()
    answers = queue.collect()
    assert len(answers) < 4
    assert queue.open == 4 - len(answers)


def workers_below() -> list[psutil.Process]:
    """The triage workers of this process."""
    below = psutil.Process().children(recursive=True)
    with contextlib.suppress(psutil.NoSuchProcess):
        return [one for one in below if "miscompile.triage.worker" in one.cmdline()]  # a zombie has no command line
    return []


def kill_one_worker(seconds: float = 30) -> None:
    """Kill the triage worker as soon as there is one, and wait until it is gone."""
    end = time.monotonic() + seconds
    while not (found := workers_below()):
        assert time.monotonic() < end, "no worker was started"
        time.sleep(0.01)
    found[0].kill()
    while found[0].is_running() and found[0].status() != psutil.STATUS_ZOMBIE:  # the queue must reap it, not the test
        time.sleep(0.01)


@pytest.mark.slow
def test_a_finding_whose_worker_is_killed_is_tried_again(tmp_path: Path) -> None:
    queue = TriageQueue(settings(tmp_path))
    try:
        put(tmp_path, queue, pending(0))
        kill_one_worker()
        (answer,) = wait(queue, 1)
    finally:
        queue.close()
    assert answer.problem == ""
    assert folder.load(tmp_path, answer.identifier).status == "confirmed"


def test_a_finding_whose_workers_are_all_killed_stays_pending(tmp_path: Path) -> None:
    queue = TriageQueue(settings(tmp_path))
    try:
        put(tmp_path, queue, pending(0))
        for _ in range(MOST_TRIES):
            kill_one_worker()
        (answer,) = wait(queue, 1)
    finally:
        queue.close()
    assert answer.died is None
    assert "stays pending" in answer.problem
    assert folder.load(tmp_path, answer.identifier).status == "pending"
