"""The transforming runner: the runs that it sends to the pool, and how it combines their outcomes."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest

import miscompile.transforms.runner as module
from miscompile.base.specs import Spec, parse_spec
from miscompile.core.case import Case, Port, Program
from miscompile.core.outcome import Crashed, Observations, Outcome, Values
from miscompile.core.pool import Pool
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor
from miscompile.transforms.catalogue import Share
from miscompile.transforms.runner import TransformingRunner

PORT = (Port("x", "float32", (None,)),)
PROGRAM = Program("onnx", b"plain", PORT, PORT)
FEEDS = tuple((Tensor("float32", np.full(size, size, np.float32)),) for size in (1, 2, 1))
CASE = Case(PROGRAM, FEEDS, {"origin": "test"})


BY_SIZE = parse_spec("bysize")


class Echo:
    """A pool that gives every run its feeds back, and notes what it was sent."""

    counters: Any = None
    compiler_cpu_seconds = 1.5

    def __init__(self, dies: bytes = b"") -> None:
        self.sent: list[Run] = []
        self.dies = dies
        self.batches: dict[int, list[Outcome]] = {}

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        self.sent += runs
        return [self._answer(run) for run in runs]

    def submit(self, runs: Sequence[Run]) -> int:
        self.batches[len(self.batches)] = self.run(runs)
        return len(self.batches) - 1

    def poll(self, timeout: float) -> list[tuple[int, list[Outcome]]]:
        done, self.batches = list(self.batches.items()), {}
        return done

    def confirm(self, run: Run, times: int = 3) -> list[Outcome]:
        return [self.run([run])[0] for _ in range(times)]

    def _answer(self, run: Run) -> Outcome:
        if run.case.program.payload == self.dies:
            return Crashed("run", 11)
        return Values(tuple(run.case.feeds), Observations(1.0, 2.0, 3, (run.case.program.payload.decode(),)))


def _by_size(case: Case, transform: Spec) -> tuple[Share, ...]:
    assert transform == BY_SIZE
    groups = ((0, 2), (1,))
    return tuple(
        Share(
            Case(Program("onnx", f"of {len(group)}".encode(), PORT, PORT), tuple(case.feeds[i] for i in group)), group
        )
        for group in groups
    )


@pytest.fixture(autouse=True)
def _forms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "present", _by_size)


def test_runs_without_a_transform_pass_through_untouched() -> None:
    pool = Echo()
    runs = [Run(CASE, "toy", Build("off")), Run(CASE, "toy", Build("full"))]
    assert len(TransformingRunner(cast(Pool, pool)).run(runs)) == 2
    assert all(sent is run for sent, run in zip(pool.sent, runs, strict=True))


def test_several_programs_make_one_outcome_in_the_order_of_the_feeds() -> None:
    pool = Echo()
    runner = TransformingRunner(cast(Pool, pool))
    runs = [Run(CASE, "toy", Build("off", transform=BY_SIZE)), Run(CASE, "toy", Build("full"))]
    static, plain = runner.run(runs)
    assert isinstance(static, Values)
    assert isinstance(plain, Values)
    assert [feed[0].shape for feed in static.results if feed[0] is not None] == [(1,), (2,), (1,)]
    assert static.observations.compile_seconds == 2.0
    assert static.observations.passes == ("of 2", "of 1")
    assert [run.build.transform for run in pool.sent] == [None] * 3


def test_submitted_batches_come_back_under_their_ticket() -> None:
    runner = TransformingRunner(cast(Pool, Echo()))
    first = runner.submit([Run(CASE, "toy", Build("off"))])
    second = runner.submit([Run(CASE, "toy", Build("off", transform=BY_SIZE))])
    done = dict(runner.poll(0.0))
    assert set(done) == {first, second}
    assert len(done[second]) == 1


def test_the_first_failure_stands_for_the_whole_transform() -> None:
    runner = TransformingRunner(cast(Pool, Echo(dies=b"of 1")))
    (outcome,) = runner.run([Run(CASE, "toy", Build("off", transform=BY_SIZE))])
    assert outcome == Crashed("run", 11)
    assert runner.confirm(Run(CASE, "toy", Build("off", transform=BY_SIZE)), 2) == [Crashed("run", 11)] * 2


def test_a_transform_of_the_adapter_travels_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Target:
        class about:  # noqa: N801 - stands for a value
            transforms = ("own",)

    monkeypatch.setattr(module, "parse_target", lambda text: Target)
    pool = Echo()
    run = Run(CASE, "toy", Build("off", transform=parse_spec("own{seed=3}")))
    TransformingRunner(cast(Pool, pool)).run([run])
    assert pool.sent == [run]
