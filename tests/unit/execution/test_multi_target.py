"""A pool for several targets gives each run to the pool of its target and merges the outcomes."""

from collections.abc import Sequence
from typing import Any

import pytest

from miscompile.base.errors import UsageError
from miscompile.core.case import Case, Program
from miscompile.core.outcome import Outcome, Raised, Unsupported
from miscompile.core.pool import Counters
from miscompile.core.run import Build, Run
from miscompile.execution.multi_target import MultiTargetPool

CASE = Case(Program("onnx", b"", (), ()), ((),))


class FakePool:
    """Answers a batch only when it has been polled twice."""

    def __init__(self, target: str) -> None:
        self.target, self.opened, self.renewed = target, False, 0
        self.waiting: dict[int, list[Run]] = {}
        self.polls = 0
        self.compiler_cpu_seconds = 1.0
        self.counters = Counters(deaths=1, forks=2)

    def __enter__(self) -> "FakePool":
        if self.target == "broken":
            raise UsageError("it cannot be loaded")
        self.opened = True
        return self

    def close(self) -> None:
        self.opened = False

    @property
    def pending(self) -> int:
        return len(self.waiting)

    def submit(self, runs: Sequence[Run]) -> int:
        ticket = len(self.waiting) + 100 * self.polls
        self.waiting[ticket] = list(runs)
        return ticket

    def poll(self, timeout: float) -> list[tuple[int, list[Outcome]]]:
        self.polls += 1
        if self.polls % 2:
            return []
        done, self.waiting = self.waiting, {}
        return [(t, [Raised("run", self.target, run.build.level) for run in runs]) for t, runs in done.items()]

    def fresh(self) -> None:
        self.renewed += 1


def multi_target_pool(targets: Sequence[str]) -> tuple[MultiTargetPool, dict[str, FakePool]]:
    made: dict[str, FakePool] = {}

    def open_pool(target: str) -> Any:
        made[target] = FakePool(target)
        return made[target]

    return MultiTargetPool(targets, open_pool), made


def told(outcomes: Sequence[Outcome]) -> list[tuple[str, str]]:
    return [(one.kind, one.message) for one in outcomes if isinstance(one, Raised)]


def test_outcomes_come_back_in_the_order_of_the_runs() -> None:
    whole, made = multi_target_pool(["a", "b"])
    with whole:
        runs = [Run(CASE, target, Build(level)) for target, level in (("a", "1"), ("b", "2"), ("a", "3"), ("c", "4"))]
        assert told(whole.run(runs)) == [("a", "1"), ("b", "2"), ("a", "3"), ("c", "4")]
        assert sorted(made) == ["a", "b", "c"]
        assert whole.run([]) == []
        assert whole.counters == Counters(deaths=3, forks=6)
        assert whole.compiler_cpu_seconds == 3.0
        whole.fresh()
    assert all(not pool.opened and pool.renewed == 1 for pool in made.values())


def test_batches_are_handed_out_once_and_one_does_not_take_anothers() -> None:
    whole, _ = multi_target_pool(["a", "b"])
    with whole:
        first = whole.submit([Run(CASE, "a", Build("1")), Run(CASE, "b", Build("2"))])
        second = whole.run([Run(CASE, "b", Build("3"))])
        assert told(second) == [("b", "3")]
        done = dict(whole.poll(5.0))
        assert told(done[first]) == [("a", "1"), ("b", "2")]
        assert whole.poll(0.0) == []


def test_a_target_that_cannot_be_loaded_closes_the_others() -> None:
    whole, made = multi_target_pool(["a", "broken"])
    with pytest.raises(UsageError, match="cannot be loaded"), whole:
        pass
    assert not made["a"].opened


def test_a_voter_that_cannot_be_loaded_supports_nothing_and_is_tried_once() -> None:
    pool, made = multi_target_pool(["a"])
    with pool:
        runs = [Run(CASE, "broken", Build("off")), Run(CASE, "a", Build("full"))]
        assert pool.run(runs) == [Unsupported("load", "it cannot be loaded"), Raised("run", "a", "full")]
        first = made["broken"]
        assert pool.run(runs[:1]) == [Unsupported("load", "it cannot be loaded")]
        assert made["broken"] is first
