"""A pool for several targets: each run goes to the pool of its target."""

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType

from miscompile.base.errors import ExecutionError, UsageError
from miscompile.core.outcome import Outcome, Unsupported
from miscompile.core.pool import Counters
from miscompile.core.run import Run
from miscompile.execution.pool import LocalPool

_TURN = 0.002
"""Seconds to wait for one pool before polling the next."""


@dataclass(slots=True)
class _Batch:
    """A batch that is spread over pools; `places` maps (target, ticket) to the indices of its runs."""

    size: int
    places: dict[tuple[str, int], list[int]]
    outcomes: dict[int, Outcome] = field(default_factory=dict)


class MultiTargetPool:
    """A context manager and a `Runner` for runs on any of `targets` (specs), with the interface of a `LocalPool`.

    `open_pool` makes the pool of a target. The pools of `targets` start at once, the pool of any other target at its
    first run. The thread that opens it must also use it.
    """

    def __init__(self, targets: Sequence[str], open_pool: Callable[[str], LocalPool]) -> None:
        self._targets, self._open_pool = tuple(dict.fromkeys(targets)), open_pool
        self._pools: dict[str, LocalPool] = {}
        self._unloadable: dict[str, str] = {}
        self._batches: dict[int, _Batch] = {}
        self._tickets: dict[tuple[str, int], int] = {}
        self._numbers = itertools.count(1)

    def __enter__(self) -> "MultiTargetPool":
        """Start the pools of the targets. Raises UsageError when one cannot be loaded."""
        try:
            for target in self._targets:
                self._pool(target)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End all workers; may be called twice."""
        for pool in self._pools.values():
            pool.close()

    @property
    def counters(self) -> Counters:
        """Counts of deaths, timeouts and forks, summed over the pools."""
        each = [pool.counters for pool in self._pools.values()]
        return Counters(
            sum(one.deaths for one in each), sum(one.timeouts for one in each), sum(one.forks for one in each),
            sum(one.zygotes for one in each), max((one.respawn_seconds for one in each), default=0.0),
        )  # fmt: skip

    @property
    def compiler_cpu_seconds(self) -> float:
        """CPU time that all workers have spent inside compilers."""
        return sum(pool.compiler_cpu_seconds for pool in self._pools.values())

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        """Execute `runs`; those on one target as one batch."""
        ticket = self.submit(runs)
        done: dict[int, list[Outcome]] = {}
        while ticket not in done:
            done.update(self._collect({ticket}, 60.0))
        return done[ticket]

    def submit(self, runs: Sequence[Run]) -> int:
        """Queue `runs` and return a ticket.

        A target that was not among those to start, and cannot be loaded, does not support anything.
        """
        number = next(self._numbers)
        places: dict[str, list[int]] = {}
        for place, run in enumerate(runs):
            places.setdefault(run.target, []).append(place)
        batch = _Batch(len(runs), {})
        for target, where in places.items():
            pool = self._loaded(target)
            if pool is None:
                batch.outcomes.update(dict.fromkeys(where, Unsupported("load", self._unloadable[target])))
                continue
            key = (target, pool.submit([runs[place] for place in where]))
            batch.places[key] = where
            self._tickets[key] = number
        self._batches[number] = batch
        return number

    def poll(self, timeout: float) -> list[tuple[int, list[Outcome]]]:
        """Return finished batches as (ticket, outcomes); waits up to `timeout` seconds when there is none yet."""
        return self._collect(set(self._batches), timeout)

    def fresh(self) -> None:
        """Replace the used workers, so that the next batches run in workers that have run nothing."""
        for pool in self._pools.values():
            pool.fresh()

    def confirm(self, run: Run, times: int = 3) -> list[Outcome]:
        """Execute `run` alone in a fresh worker, `times` times."""
        return self._pool(run.target).confirm(run, times)

    def allow(self, seconds: float | None) -> None:
        """Set the time limit of a run in seconds; None restores the initial limit."""
        for pool in self._pools.values():
            pool.allow(seconds)

    def _loaded(self, target: str) -> LocalPool | None:
        """Return the pool of a target, None for one that could not be loaded, now or earlier."""
        if target in self._unloadable:
            return None
        try:
            return self._pool(target)
        except UsageError as error:
            self._unloadable[target] = str(error)
            return None

    def _pool(self, target: str) -> LocalPool:
        if target not in self._pools:
            pool = self._open_pool(target)
            pool.__enter__()
            self._pools[target] = pool
        return self._pools[target]

    def _collect(self, wanted: set[int], timeout: float) -> list[tuple[int, list[Outcome]]]:
        """Return those of the batches `wanted` that are done; the others stay for a later call."""
        if not wanted <= set(self._batches):
            raise ExecutionError("no such batch")
        deadline = time.monotonic() + timeout
        done: list[int] = []
        while wanted and not done:
            busy = [target for target, pool in self._pools.items() if pool.pending]
            for target in busy:
                self._take(target, _TURN if len(busy) > 1 else max(0.0, deadline - time.monotonic()))
            done = [number for number in wanted if len(self._batches[number].outcomes) == self._batches[number].size]
            if time.monotonic() >= deadline:
                break
        return [(number, self._hand_out(number)) for number in sorted(done)]

    def _take(self, target: str, timeout: float) -> None:
        for ticket, outcomes in self._pools[target].poll(timeout):
            batch = self._batches[self._tickets.pop((target, ticket))]
            batch.outcomes.update(zip(batch.places[target, ticket], outcomes, strict=True))

    def _hand_out(self, number: int) -> list[Outcome]:
        batch = self._batches.pop(number)
        return [batch.outcomes[place] for place in range(batch.size)]
