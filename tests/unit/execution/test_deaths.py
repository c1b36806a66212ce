"""Whom a death is attributed to, from what lies in the black box."""

import os
import signal
from collections.abc import Iterator

import numpy as np
import pytest

from miscompile.core.case import Case, Program
from miscompile.core.outcome import Crashed, OutOfMemory, TimedOut, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor
from miscompile.execution.deaths import busy_with, outcome_of_death, printed_last
from miscompile.execution.flight_recorder import COLLECT, COMPILE, IDLE, REPLY, TAIL, Recorder
from miscompile.execution.limits import Limits
from miscompile.execution.proxy import Batch, WorkerProxy
from miscompile.execution.wire import ReplyEncoder

FEED = (Tensor("float32", np.zeros(1, np.float32)),)
RUN = Run(Case(Program("probe", b"", (), ()), (FEED,)), "probe", Build())
SIGNALLED, LEFT = int(signal.SIGABRT), 3 << 8


@pytest.fixture
def proxy() -> Iterator[WorkerProxy]:
    made = WorkerProxy(0, Limits(output=10_000))
    yield made
    made.far_end.close()
    os.close(made.recorder_fd)
    made.close()


def batch(done: int = 0) -> Batch:
    """A batch of three runs, `done` of which were answered by the present worker."""
    return Batch(9, (RUN,) * 3, 9, None, outcomes=[Values(())] * done)


@pytest.mark.parametrize(
    ("sequence", "index", "step", "done", "busy"),
    [
        (9, 0, COMPILE, 0, True),
        (9, 1, COLLECT, 1, True),
        (9, 1, REPLY, 1, True),  # it died before the reply was out
        (9, 0, REPLY, 1, False),  # it died after
        (9, 2, IDLE, 2, False),
        (8, 0, COMPILE, 0, False),  # it had not come to this batch
    ],
)
def test_the_run_in_progress_is_blamed(
    proxy: WorkerProxy, sequence: int, index: int, step: int, done: int, busy: bool
) -> None:
    proxy.recorder.begin(sequence, index)
    proxy.recorder.step(step)
    assert busy_with(proxy, batch(done)) is busy


def test_the_run_after_the_one_that_was_overdue_is_not_blamed(proxy: WorkerProxy) -> None:
    proxy.victim = (9, 0)
    proxy.recorder.begin(9, 1)
    assert not busy_with(proxy, batch(1))
    proxy.victim = (9, 1)
    assert busy_with(proxy, batch(1))
    assert isinstance(outcome_of_death(proxy, batch(1), SIGNALLED, 2.0, 0, 0.0), TimedOut)


def test_the_wait_status_becomes_signal_or_exit_status(proxy: WorkerProxy) -> None:
    proxy.recorder.begin(9, 0)
    proxy.recorder.step(COMPILE)
    for status, number in ((SIGNALLED, signal.SIGABRT), (LEFT, -3), (None, signal.SIGKILL)):
        outcome = outcome_of_death(proxy, batch(), status, 1.0, 5, 7.0)
        assert isinstance(outcome, Crashed)
        assert (outcome.stage, outcome.signal, outcome.observations.memory) == ("compile", number, 5)


def test_the_compilers_cpu_time_up_to_the_death_is_counted(proxy: WorkerProxy) -> None:
    proxy.recorder.begin(9, 0)
    assert outcome_of_death(proxy, batch(), SIGNALLED, 1.0, 0, 9.0).observations.cpu_seconds == 0.0, "it was not called"
    proxy.recorder.compiling(6.5)
    for cpu, inside in ((9.0, 2.5), (0.0, 0.0)):
        assert outcome_of_death(proxy, batch(), SIGNALLED, 1.0, 0, cpu).observations.cpu_seconds == inside


def test_an_abort_after_a_failed_allocation_is_out_of_memory(proxy: WorkerProxy) -> None:
    proxy.recorder.begin(9, 0)
    os.write(proxy.printed.fd, b"terminate called after throwing an instance of 'std::bad_alloc'\n")
    assert isinstance(outcome_of_death(proxy, batch(), SIGNALLED, 1.0, 0, 0.0), OutOfMemory)
    assert isinstance(outcome_of_death(proxy, batch(), int(signal.SIGSEGV), 1.0, 0, 0.0), Crashed)


def test_last_words_are_the_compilers() -> None:
    said = "Check failed: rank == 4\n" + "x" * TAIL
    stack = (
        '  File "/a/adapter.py", line 3 in build\n'
        '  File "/b/miscompile/targets/acme/runner.py", line 9 in run\n'
        '  File "/b/miscompile/execution/worker.py", line 114 in serve\n'
        '  File "<frozen runpy>", line 88 in _run_code\n'
        "Extension modules: numpy.linalg (total: 1)\n"
    )
    words = printed_last(said + "\n" + stack)
    assert words.endswith('x\n  File "/a/adapter.py", line 3 in build\n')
    assert len(words) == TAIL


def test_frames_of_the_toy_compiler_are_kept() -> None:
    frame = '  File "/b/miscompile/targets/toy/compiler.py", line 3 in fuse\n'
    assert printed_last(frame) == frame


def test_a_panic_of_rust_is_kept_and_the_stack_of_its_interface_is_not() -> None:
    panic = "thread '<unnamed>' (31) panicked at core/src/ops/pad.rs:72:23:\nassertion failed: index < 4\n"
    abort = (
        "thread '<unnamed>' (31) panicked at /rustc/b940/library/core/src/panicking.rs:225:5:\n"
        "panic in a function that cannot unwind\nstack backtrace:\n"
        + "".join(f"  {number}: 0x7f - frame\n" for number in range(TAIL))
        + "thread caused non-unwinding panic. aborting.\n"
    )
    assert printed_last(f"{panic}\n{abort}Fatal Python error: Aborted\n") == f"{panic}\nFatal Python error: Aborted\n"


def test_replies_that_were_ready_are_taken_in_once(proxy: WorkerProxy) -> None:
    worker, encoder = Recorder(proxy.recorder_fd), ReplyEncoder(9)
    replies = [encoder.encode(index, Values((FEED,))) for index in range(2)]
    for reply in replies:
        worker.hold(reply)
    pending = batch()
    proxy.inflight.append(pending)
    proxy.far_end.send(replies[0])  # and there it died
    proxy.far_end.close()
    assert proxy.drain() == []
    assert len(pending.outcomes) == 2
    assert not proxy.garbage
    worker.begin(9, 2)
    assert busy_with(proxy, pending)
    worker.close()


@pytest.mark.parametrize("number", [8, 9])
def test_what_a_broken_worker_holds_is_garbage_or_passed_over(proxy: WorkerProxy, number: int) -> None:
    worker = Recorder(proxy.recorder_fd)
    worker.hold(ReplyEncoder(8).encode(0, Values(())) if number == 8 else b"no frame, this is, at all")
    pending = batch()
    proxy.inflight.append(pending)
    proxy.far_end.close()
    assert proxy.drain() == []
    assert pending.outcomes == []
    assert bool(proxy.garbage) is (number == 9)
    worker.close()
