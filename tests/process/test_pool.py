"""Workers die in every way, and every run still has exactly one outcome, its own."""

import gc
import json
import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

from miscompile.base.errors import ExecutionError, UsageError
from miscompile.core.case import Case, Program
from miscompile.core.outcome import Crashed, Outcome, OutOfMemory, Raised, TimedOut, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor
from miscompile.execution.limits import LEAST_AFTER_HANG, Limits
from miscompile.execution.pool import LocalPool

pytestmark = pytest.mark.process

HERE = str(Path(__file__).parent)
LIMITS = Limits(seconds=1.0, memory=1 << 30, output=1 << 16)


def pool(workers: int = 1, limits: Limits = LIMITS, window: int = 2, adapter: str = "Probe") -> LocalPool:
    path = os.pathsep.join(filter(None, (HERE, os.environ.get("PYTHONPATH"))))
    return LocalPool(
        "probe", workers, limits, window, adapter=f"probe_adapter:{adapter}", environment={"PYTHONPATH": path}
    )


def run(value: float = 0.0, feeds: int = 1, observe: bool = False, **order: object) -> Run:
    return ordered(order, value, feeds, observe)


def ordered(order: Mapping[str, object], value: float = 0.0, feeds: int = 1, observe: bool = False) -> Run:
    """Return a run in which the probe does what `order` says: for each stage, how it ends."""
    feed = (Tensor("float32", np.array([value], np.float32)),)
    program = Program("probe", json.dumps(order).encode(), (), ())
    return Run(Case(program, (feed,) * feeds), "probe", Build(observe=observe))


def value_of(outcome: Outcome) -> float:
    assert isinstance(outcome, Values), outcome
    tensor = outcome.results[0][0]
    assert tensor is not None
    return float(tensor.array.ravel()[0])


def until(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Wait for something that another process does."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.fixture(scope="module")
def shared() -> Iterator[LocalPool]:
    with pool() as opened:
        yield opened


# One run, one way to end ---------------------------------------------------------------------------------------------


def test_values_and_a_missing_output(shared: LocalPool) -> None:
    (outcome,) = shared.run([run(3.0, feeds=2)])
    assert isinstance(outcome, Values)
    assert len(outcome.results) == 2
    assert value_of(outcome) == 4.0
    assert outcome.results[1][1] is None
    assert outcome.observations.memory > 1 << 20


def test_no_runs_no_outcomes(shared: LocalPool) -> None:
    assert shared.run([]) == []


def test_equal_results_of_a_batch_are_one_object(shared: LocalPool) -> None:
    first, second = shared.run([run(1.0), run(1.0)])
    assert isinstance(first, Values)
    assert isinstance(second, Values)
    assert first.results[0][0] is second.results[0][0]


@pytest.mark.parametrize("stage", ["compile", "run"])
@pytest.mark.parametrize(
    ("order", "kind", "message"),
    [("error", "ValueError", "bad axis 7"), ("exit", "SystemExit", "3"), ("strange", "StrangeError", "no message")],
)
def test_exceptions_tell_stage_kind_message_and_frames(
    shared: LocalPool, stage: str, order: str, kind: str, message: str
) -> None:
    pids = shared.pids()
    (outcome,) = shared.run([ordered({stage: order})])
    assert isinstance(outcome, Raised)
    assert (outcome.stage, outcome.kind) == (stage, kind)
    assert message in outcome.message
    assert "probe_adapter.py" in outcome.frames[0]
    assert shared.pids() == pids


@pytest.mark.parametrize("stage", ["compile", "run"])
@pytest.mark.parametrize(
    ("order", "number"),
    [("segv", signal.SIGSEGV), ("abort", signal.SIGABRT), ("os_exit", -3), ("garbage", signal.SIGKILL)],
)
def test_deaths_tell_stage_and_signal(shared: LocalPool, stage: str, order: str, number: int) -> None:
    before = shared.counters
    (outcome,) = shared.run([ordered({stage: order})])
    assert isinstance(outcome, Crashed)
    assert (outcome.stage, outcome.signal) == (stage, number)
    assert value_of(shared.run([run(1.0)])[0]) == 2.0
    assert shared.counters.deaths == before.deaths + 1
    assert shared.counters.forks == before.forks + 1
    assert shared.counters.respawn_seconds > 0


def test_a_crash_keeps_the_last_words(shared: LocalPool) -> None:
    (outcome,) = shared.run([run(compile="write", run="segv")])
    assert isinstance(outcome, Crashed)
    assert "yyy" in outcome.observations.stderr
    assert "Segmentation fault" in outcome.observations.stderr
    assert "probe_adapter.py" in outcome.observations.stderr
    assert "worker.py" not in outcome.observations.stderr
    assert len(outcome.observations.stderr) <= 2_000


def test_a_destructor_that_crashes_is_a_crash_while_collecting(shared: LocalPool) -> None:
    (outcome,) = shared.run([run(collect="segv")])
    assert isinstance(outcome, Crashed)
    assert (outcome.stage, outcome.signal) == ("collect", signal.SIGSEGV)


@pytest.mark.parametrize("stage", ["compile", "run"])
@pytest.mark.parametrize("order", ["spin", "loop"])
def test_a_hang_is_killed(shared: LocalPool, stage: str, order: str) -> None:
    timeouts = shared.counters.timeouts
    (outcome,) = shared.run([ordered({stage: order})])
    assert isinstance(outcome, TimedOut)
    assert (outcome.stage, outcome.seconds) == (stage, LIMITS.seconds)
    assert shared.counters.timeouts == timeouts + 1


def test_the_runs_of_a_batch_get_less_time_once_one_has_hung() -> None:
    with pool(limits=replace(LIMITS, seconds=4.0)) as opened:
        first, value, second = opened.run([run(run="loop"), run(1.0), run(compile="loop")])
        (later,) = opened.run([run(run="loop")])
    assert isinstance(first, TimedOut)
    assert isinstance(second, TimedOut)
    assert isinstance(later, TimedOut)
    assert (first.seconds, second.seconds, later.seconds) == (4.0, LEAST_AFTER_HANG, 4.0)
    assert value_of(value) == 2.0


@pytest.mark.parametrize("order", ["eat", "bad_alloc"])
def test_memory_is_limited_and_the_worker_replaced(shared: LocalPool, order: str) -> None:
    pids = shared.pids()
    outcome, after = shared.run([run(run=order), run(1.0)])
    assert isinstance(outcome, OutOfMemory)
    assert outcome.stage == "run"
    assert value_of(after) == 2.0
    assert shared.pids() != pids


def test_a_huge_mapping_fails(shared: LocalPool) -> None:
    (outcome,) = shared.run([run(run="no_map")])
    assert isinstance(outcome, OutOfMemory)


def test_printing_is_capped(shared: LocalPool) -> None:
    first, second = shared.run([run(1.0, run="print"), run(2.0, run="libc")])
    assert value_of(first) == 2.0
    assert set(first.observations.stderr) == {"x"}
    assert len(first.observations.stderr) == 2_000
    assert second.observations.stderr == "from libc\n"


def test_passes_are_observed_when_asked(shared: LocalPool) -> None:
    observed, plain = shared.run([run(compile="log", observe=True), run(compile="log")])
    assert observed.observations.passes == ("Fold", "Fuse")
    assert plain.observations.passes == ()
    assert "fired: Fold" in plain.observations.stderr


def test_a_wrongly_stored_result_is_an_error_not_a_death(shared: LocalPool) -> None:
    (outcome,) = shared.run([run(wrong=True)])
    assert isinstance(outcome, Raised)
    assert (outcome.stage, outcome.kind) == ("collect", "AdapterError")


def test_a_run_that_writes_into_its_inputs_does_not_change_the_next(shared: LocalPool) -> None:
    spoilt = run(1.0, scribble=True)
    plain = Run(Case(run().case.program, spoilt.case.feeds), "probe", Build())
    assert [value_of(outcome) for outcome in shared.run([spoilt, plain])] == [10.0, 2.0]


def test_a_run_on_another_target_is_refused(shared: LocalPool) -> None:
    with pytest.raises(ExecutionError, match="other"):
        shared.submit([Run(run().case, "other", Build())])


# Attribution ---------------------------------------------------------------------------------------------------------


def test_a_death_is_attributed_to_its_run_and_costs_the_others_nothing(shared: LocalPool) -> None:
    outcomes = shared.run([run(0.0), run(run="segv"), run(2.0), run(compile="abort"), run(4.0)])
    assert [value_of(outcomes[index]) for index in (0, 2, 4)] == [1.0, 3.0, 5.0]
    assert isinstance(outcomes[1], Crashed)
    assert (outcomes[1].stage, outcomes[1].signal) == ("run", signal.SIGSEGV)
    assert isinstance(outcomes[3], Crashed)
    assert (outcomes[3].stage, outcomes[3].signal) == ("compile", signal.SIGABRT)


@pytest.mark.parametrize("order", ["segv", "loop", "garbage", "hang_up", "kill_zygote"])
def test_outcomes_that_were_held_back_survive_whatever_comes_next(shared: LocalPool, order: str) -> None:
    shared.fresh()
    first, again, lost, rest = shared.run([run(count=True), run(count=True), run(run=order), run(3.0)])
    assert [value_of(first), value_of(again), value_of(rest)] == [1.0, 2.0, 4.0]
    assert isinstance(lost, TimedOut if order == "loop" else Crashed)


def test_outcomes_too_large_to_be_held_back_survive_as_well(shared: LocalPool) -> None:
    small, large, lost = shared.run([run(1.0), run(size=3_000_000), run(run="segv")])
    assert value_of(small) == 2.0
    assert isinstance(large, Values)
    assert large.results[0][0] is not None
    assert large.results[0][0].array.shape == (3_000_000,)
    assert isinstance(lost, Crashed)


def test_the_rest_of_a_batch_runs_once(shared: LocalPool) -> None:
    shared.fresh()
    outcomes = shared.run([run(count=True), run(count=True), run(run="os_exit"), run(count=True), run(count=True)])
    assert [value_of(outcomes[index]) for index in (0, 1, 3, 4)] == [1.0, 2.0, 1.0, 2.0]


@pytest.mark.parametrize("workers", [1, 2])
def test_pipelined_batches_around_deaths_are_answered_exactly_once(workers: int) -> None:
    orders: list[dict[str, object]] = [
        {"run": "segv"} if n % 7 == 3 else {"compile": "os_exit"} if n % 11 == 5 else {} for n in range(40)
    ]
    with pool(workers, window=3) as opened:
        tickets = [opened.submit([run(float(n)), ordered(order, n + 0.5)]) for n, order in enumerate(orders)]
        answers: dict[int, list[Outcome]] = {}
        while opened.pending:
            for ticket, outcomes in opened.poll(1.0):
                assert ticket not in answers
                answers[ticket] = outcomes
        assert opened.poll(0.0) == []
    assert sorted(answers) == sorted(tickets)
    for n, (ticket, order) in enumerate(zip(tickets, orders, strict=True)):
        first, second = answers[ticket]
        assert value_of(first) == n + 1
        assert isinstance(second, Crashed) if order else value_of(second) == n + 1.5


def test_big_frames_both_ways_do_not_lock(shared: LocalPool) -> None:
    feed = (Tensor("uint8", np.zeros(3_000_000, np.uint8)),)
    program = Program("probe", b"{}", (), ())
    tickets = [shared.submit([Run(Case(program, (feed,)), "probe", Build())]) for _ in range(6)]
    answered = []
    while shared.pending:
        for ticket, (outcome,) in shared.poll(1.0):
            assert value_of(outcome) == 1.0
            answered.append(ticket)
    assert answered == tickets


def test_run_leaves_the_answers_of_submitted_batches_for_poll(shared: LocalPool) -> None:
    ticket = shared.submit([run(1.0)])
    assert value_of(shared.run([run(5.0)])[0]) == 6.0
    ((polled, (outcome,)),) = shared.poll(5.0)
    assert (polled, value_of(outcome)) == (ticket, 2.0)


# Death from outside --------------------------------------------------------------------------------------------------


def test_an_idle_worker_killed_from_outside_is_replaced(shared: LocalPool) -> None:
    (pid,) = shared.pids()
    os.kill(pid, signal.SIGKILL)
    assert value_of(shared.run([run(1.0)])[0]) == 2.0
    assert shared.pids() != [pid]


def test_a_worker_killed_during_a_run_is_a_crash_of_that_run() -> None:
    with pool(limits=Limits(seconds=60.0)) as opened:
        (pid,) = opened.pids()
        ticket = opened.submit([run(1.0), run(compile="child", run="loop"), run(2.0)])
        assert until(lambda: not opened.poll(0.0) and bool(psutil.Process(pid).children()))
        os.kill(pid, signal.SIGKILL)
        ((polled, outcomes),) = opened.poll(20.0)
        assert polled == ticket
        assert [value_of(outcomes[index]) for index in (0, 2)] == [2.0, 3.0]
        assert isinstance(outcomes[1], Crashed)
        assert outcomes[1].stage in ("compile", "run")
        assert outcomes[1].signal == signal.SIGKILL


def test_a_zygote_killed_from_outside_blames_no_run() -> None:
    with pool(2) as opened:
        zygote = opened.zygote
        tickets = [opened.submit([run(float(n), run="sleep")]) for n in range(4)]
        opened.poll(0.05)
        os.kill(zygote, signal.SIGKILL)
        answers: dict[int, list[Outcome]] = {}
        while opened.pending:
            answers |= dict(opened.poll(1.0))
        assert [value_of(answers[ticket][0]) for ticket in tickets] == [1.0, 2.0, 3.0, 4.0]
        assert opened.zygote != zygote
        assert opened.counters.zygotes == 1


def test_a_run_that_always_kills_the_zygote_is_blamed_in_the_end() -> None:
    with pool() as opened:
        bad, good = opened.run([run(run="kill_zygote"), run(1.0)])
    assert isinstance(bad, Crashed)
    assert (bad.stage, bad.signal) == ("run", signal.SIGKILL)
    assert value_of(good) == 2.0


def test_a_worker_that_closes_its_channel_is_a_crash(shared: LocalPool) -> None:
    (outcome,) = shared.run([run(run="hang_up")])
    assert isinstance(outcome, Crashed)


def test_what_a_dead_worker_started_dies_with_it(shared: LocalPool) -> None:
    (pid,) = shared.pids()
    shared.submit([run(compile="child", run="loop")])
    children: list[psutil.Process] = []

    def started() -> bool:
        children.extend(psutil.Process(pid).children())
        return bool(children)

    assert until(lambda: bool(shared.poll(0.0)) or started())
    assert children
    while shared.pending:
        shared.poll(1.0)
    assert until(lambda: gone(children[0].pid))


def test_no_process_is_left_when_the_pool_is_closed() -> None:
    with pool(2) as opened:
        pids = [opened.zygote, *opened.pids()]
        opened.submit([run(run="loop")])
    assert all(gone(pid) for pid in pids)
    with pytest.raises(ExecutionError):
        opened.run([run()])


def test_no_process_is_left_when_the_parent_is_killed() -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from test_pool import Limits, pool, run\n"
        "with pool(2, Limits(seconds=600.0)) as opened:\n"
        "    pids = [opened.zygote, *opened.pids()]\n"
        "    for _ in range(2): opened.submit([run(run='spin')])\n"
        "    opened.poll(0.2)\n"
        "    print(*pids, flush=True)\n"
        "    opened.poll(600.0)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, HERE], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 3
        assert not any(gone(pid) for pid in pids)
        parent.kill()
    assert until(lambda: all(gone(pid) for pid in pids))


# Fresh workers and histories -----------------------------------------------------------------------------------------


def test_fresh_workers_have_run_nothing(shared: LocalPool) -> None:
    shared.fresh()
    assert value_of(shared.run([run(count=True)])[0]) == 1.0
    assert value_of(shared.run([run(count=True)])[0]) == 2.0
    shared.fresh()
    assert value_of(shared.run([run(count=True)])[0]) == 1.0


def test_a_stopped_worker_that_gets_no_more_work_is_killed(shared: LocalPool) -> None:
    assert value_of(shared.run([run(1.0)])[0]) == 2.0
    (pid,) = shared.pids()
    os.kill(pid, signal.SIGSTOP)
    shared.fresh()
    assert value_of(shared.run([run(1.0)])[0]) == 2.0
    assert until(lambda: gone(pid))


def test_confirming_runs_alone_even_while_batches_are_pending(shared: LocalPool) -> None:
    for _ in range(4):
        shared.submit([run(count=True)])
    assert [value_of(outcome) for outcome in shared.confirm(run(count=True))] == [1.0, 1.0, 1.0]
    while shared.pending:
        shared.poll(1.0)


def test_a_worker_is_recycled() -> None:
    with pool(limits=Limits(recycle=2)) as opened:
        values = [value_of(opened.run([run(count=True)])[0]) for _ in range(5)]
        assert values == [1.0, 2.0, 1.0, 2.0, 1.0]
        assert opened.counters.deaths == 0


def test_a_death_that_needs_earlier_programs_does_not_repeat_alone(shared: LocalPool) -> None:
    shared.fresh()
    brittle = run(brittle=True)
    outcomes = shared.run([run(poison=True), brittle])
    assert isinstance(outcomes[1], Crashed)
    assert all(isinstance(outcome, Values) for outcome in shared.confirm(brittle, 2))


def test_the_tensors_of_runs_that_ended_are_freed() -> None:
    given = run(1.0)
    alive = weakref.ref(given.case.feeds[0][0].array)
    with pool() as opened:
        opened.run([given])
        opened.run([run(2.0)])
        del given
        gc.collect()
        assert alive() is None


def test_what_cannot_be_meant_is_no_outcome() -> None:
    with pool() as opened:
        with pytest.raises(ExecutionError, match="probe was given what cannot be built: no such pattern"):
            opened.run([run(1.0), run(compile="unmeant")])
        assert value_of(opened.run([run(1.0)])[0]) == 2.0, "the pool goes on"


# Loading -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("adapter", "reason"),
    [
        ("Unloadable", "ModuleNotFoundError: No module named 'probecompiler'"),
        ("DiesAtImport", "killed by signal 11 after printing: about to die"),
        ("KilledAtImport", "killed by signal 9"),
        ("Absent", "has no attribute 'Absent'"),
    ],
)
def test_a_target_that_cannot_be_loaded_is_the_users_error(adapter: str, reason: str) -> None:
    with pytest.raises(UsageError, match="target probe cannot be loaded") as caught, pool(adapter=adapter):
        pass
    assert reason in str(caught.value)


def test_a_zygote_that_is_killed_while_it_loads_is_replaced(tmp_path: Path) -> None:
    environment = {"PYTHONPATH": HERE, "PROBE_LOADED": str(tmp_path / "loaded")}
    with LocalPool("probe", adapter="probe_adapter:KilledAtFirstImport", environment=environment) as opened:
        assert value_of(opened.run([run(1.0)])[0]) == 2.0
        assert opened.counters.zygotes == 1


def test_an_interpreter_that_is_not_there_is_the_users_error() -> None:
    with (
        pytest.raises(UsageError, match="/nowhere/python"),
        LocalPool("probe", adapter="probe_adapter:Probe", python="/nowhere/python"),
    ):
        pass


def test_another_interpreter_can_be_named() -> None:
    environment = {"PYTHONPATH": HERE}
    with LocalPool("probe", adapter="probe_adapter:Probe", python=sys.executable, environment=environment) as opened:
        assert value_of(opened.run([run(1.0)])[0]) == 2.0
