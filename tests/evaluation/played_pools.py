"""Pools without workers: a function plays the compiler."""

from collections.abc import Callable, Sequence
from itertools import count
from types import TracebackType
from typing import Self

import numpy as np

from evaluation.series import SeriesPools
from miscompile.base.dtypes import DTYPES
from miscompile.core.case import Port
from miscompile.core.outcome import Observations, Outcome, Values
from miscompile.core.pool import Counters
from miscompile.core.run import Run
from miscompile.core.tensor import Tensor
from miscompile.engine.plan import Plan
from miscompile.graph.read import read


class PlayedPool:
    """Answers every run with what `play` says, the newest batch first."""

    def __init__(self, play: Callable[[Run], Outcome]) -> None:
        self.play = play
        self.numbers = count()
        self.waiting: dict[int, list[Outcome]] = {}
        self.most = 0
        self.made_fresh = 0
        self.counters = Counters()
        self.compiler_cpu_seconds = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        return None

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        return [self.play(run) for run in runs]

    def submit(self, runs: Sequence[Run]) -> int:
        number = next(self.numbers)
        self.waiting[number] = self.run(runs)
        self.most = max(self.most, len(self.waiting))
        return number

    def poll(self, timeout: float) -> list[tuple[int, list[Outcome]]]:
        del timeout
        return [self.waiting.popitem()]

    def fresh(self) -> None:
        self.made_fresh += 1

    def confirm(self, run: Run, times: int = 3) -> list[Outcome]:
        return self.run([run] * times)

    def allow(self, seconds: float | None) -> None:
        del seconds  # no run of it takes time


def series_pools(
    play: Callable[[Run], Outcome], again: Callable[[Run], Outcome] | None = None
) -> tuple[SeriesPools, PlayedPool, PlayedPool]:
    """Workers that do as `play` says, and others that do as `again` says when they are asked to confirm."""
    pool, second = PlayedPool(play), PlayedPool(again or play)
    return SeriesPools(Plan("toy"), pool, second), pool, second


def operators(run: Run) -> list[str]:
    """Return the operators of a run's program, in order."""
    return [node.op for node in read(run.case.program.payload).graph.nodes]


def with_passes(passes: Callable[[list[str]], Sequence[str]]) -> Callable[[Run], Outcome]:
    """Play a compiler that gives values for every program; `passes` returns those that fire, by operators."""

    def play(run: Run) -> Outcome:
        ports = run.case.program.outputs
        results = tuple(Tensor(one.dtype, np.zeros(sizes(one), DTYPES[one.dtype].storage)) for one in ports)
        fired = tuple(passes(operators(run))) if run.build.observe else ()
        return Values((results,) * len(run.case.feeds), Observations(passes=fired))

    return play


def sizes(port: Port) -> tuple[int, ...]:
    return tuple(int(size) for size in port.shape or () if isinstance(size, int))
