"""Milliseconds that a death costs, and microseconds of a batch that does nothing. Run as a script."""

import ctypes
import os
import statistics
import time
from pathlib import Path

import numpy as np

from miscompile.core.case import Case, Feed, Program
from miscompile.core.outcome import Crashed, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor
from miscompile.execution.pool import LocalPool

DEATHS = 30
BATCHES = 3_000


class Echo:
    """An adapter whose programs return their inputs; the program `die` is a segmentation fault."""

    def build(self, program: Program, build: Build) -> "Echo":
        """Return the session, or die."""
        if program.payload == b"die":
            ctypes.string_at(0)
        return self

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Return the inputs."""
        return feed

    def passes(self) -> tuple[str, ...]:
        """Name no passes."""
        return ()

    def fired(self, log: str) -> tuple[str, ...]:
        """See no passes."""
        return ()


def batch(payload: bytes) -> list[Run]:
    """Return two runs of one case."""
    feed = tuple(Tensor("float32", np.ones((2, 3, 4), np.float32)) for _ in range(4))
    case = Case(Program("echo", payload, (), ()), (feed,))
    return [Run(case, "echo", Build(level)) for level in ("off", "full")]


def respawns(pool: LocalPool) -> list[float]:
    """Return seconds from a submitted death to the answer of the batch after it."""
    times = []
    for _ in range(DEATHS):
        begin = time.perf_counter()
        (outcome,) = pool.run(batch(b"die")[:1])
        assert isinstance(outcome, Crashed)
        assert all(isinstance(outcome, Values) for outcome in pool.run(batch(b"")))
        times.append(time.perf_counter() - begin)
    return times


def throughput(pool: LocalPool) -> float:
    """Return seconds a batch of two runs, pipelined."""
    runs = batch(bytes(10_000))
    begin = time.perf_counter()
    submitted = answered = 0
    while answered < BATCHES:
        while submitted < BATCHES and pool.pending < 4:
            pool.submit(runs)
            submitted += 1
        answered += len(pool.poll(1.0))
    return (time.perf_counter() - begin) / BATCHES


def main() -> None:
    """Measure and print."""
    environment = {"PYTHONPATH": os.pathsep.join((str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")))}
    with LocalPool("echo", adapter="respawn:Echo", environment=environment) as pool:
        pool.run(batch(b""))
        times = respawns(pool)
        print(f"death to next answer: median {statistics.median(times) * 1e3:.1f} ms, worst {max(times) * 1e3:.1f} ms")
        print(f"death to birth of the replacement, last: {pool.counters.respawn_seconds * 1e3:.1f} ms")
        print(f"batch of two empty runs, pipelined: {throughput(pool) * 1e6:.0f} us")


if __name__ == "__main__":
    main()
