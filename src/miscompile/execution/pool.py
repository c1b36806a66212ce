"""The local pool: workers on this machine execute runs; each run gets an outcome, even if its worker dies.

Batches wait in a queue and go to the least busy worker, up to `window` at a time, so that a worker never waits for its
parent. A death ends the run in progress, as the flight recorder shows it; the runs after it go to another worker. The
pool has no threads: all its work happens inside `poll`, `run` and `submit`.
"""

import itertools
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType

from miscompile.base.errors import ExecutionError
from miscompile.core.outcome import Outcome, Raised
from miscompile.core.pool import Counters
from miscompile.core.run import Run
from miscompile.execution.limits import Limits
from miscompile.execution.proxy import Batch, WorkerProxy
from miscompile.execution.supervisor import WorkerSupervisor
from miscompile.execution.wire import OURS, encode_batch
from miscompile.execution.zygote_client import Origin
from miscompile.targets.registry import parse_target


def _recycling(limits: Limits, batches: int | None) -> Limits:
    """Return `limits` for a target whose workers last for so many batches only."""
    return limits if batches is None else replace(limits, recycle=min(batches, limits.recycle))


class LocalPool:
    """Workers for one target; a context manager and a `Runner`.

    `target` is a target spec. `adapter` (`module:Class`) replaces the target's own adapter, `python` the interpreter
    of the workers, `environment` adds to theirs. `compiler_cpu_seconds` is the CPU time that the workers have spent
    inside the compiler, for all outcomes handed out. Use the pool in the thread that opens it: the workers die with it.
    """

    def __init__(
        self,
        target: str,
        workers: int = 1,
        limits: Limits | None = None,
        window: int = 2,
        *,
        adapter: str | None = None,
        python: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._origin = Origin(target, adapter, python, dict(environment or {}))
        self._limits = _recycling(limits or Limits(), None if adapter else parse_target(target).about.recycle)
        self._size, self._window = workers, window
        self._supervisor: WorkerSupervisor | None = None
        self._waiting: deque[Batch] = deque()
        self._done: dict[int, Batch] = {}
        self._open: set[int] = set()
        self._numbers = itertools.count(1)
        self._counters = Counters()
        self.compiler_cpu_seconds = 0.0

    def __enter__(self) -> "LocalPool":
        """Start the workers. Raises UsageError when the target cannot be loaded."""
        self._supervisor = WorkerSupervisor(self._origin, self._limits, self._size)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End all workers and wait for their end; pending batches are lost. May be called twice."""
        if self._supervisor is not None:
            self._counters = self._supervisor.counters
            self._supervisor.close()
            self._supervisor = None

    @property
    def counters(self) -> Counters:
        """Counts of deaths, timeouts and forks since the pool was opened."""
        return self._counters if self._supervisor is None else self._supervisor.counters

    @property
    def pending(self) -> int:
        """Number of batches that were submitted and not yet handed out."""
        return len(self._open)

    @property
    def zygote(self) -> int:
        """Process id of the zygote. Raises ExecutionError when the pool is closed."""
        return self._running().zygote

    def pids(self) -> list[int]:
        """Process ids of the living workers; waits until all have been forked."""
        supervisor = self._running()
        while any(proxy.pid is None for proxy in supervisor.proxies.values()):
            self._turn(0.05)
        return [proxy.pid for proxy in supervisor.proxies.values() if proxy.pid is not None]

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        """Execute `runs` as one batch and return their outcomes; see `submit` for errors."""
        return self._wait(self.submit(runs))

    def run_alone(self, runs: Sequence[Run]) -> list[Outcome]:
        """Execute `runs` as one batch in a worker that has run nothing before, and replace that worker afterwards."""
        return self._wait(self._submit(runs, alone=True))

    def submit(self, runs: Sequence[Run]) -> int:
        """Queue `runs` as one batch and return its ticket.

        Raises ExecutionError for a run on another target, or with a tensor whose storage contradicts its type.
        """
        return self._submit(runs, alone=False)

    def poll(self, timeout: float) -> list[tuple[int, list[Outcome]]]:
        """Return finished batches as (ticket, outcomes); waits up to `timeout` seconds when there is none yet.

        Raises ExecutionError when workers can no longer be started, and for a run whose options the adapter does not
        accept: that is no outcome, because it is no result of the compiler.
        """
        deadline = time.monotonic() + timeout
        self._turn(0.0 if self._done or not self._open else timeout)
        while not self._done and self._open and (rest := deadline - time.monotonic()) > 0:
            self._turn(rest)
        return [(ticket, self._hand_out(ticket)) for ticket in list(self._done)]

    def fresh(self) -> None:
        """Replace every worker that has run anything, so that the next batch runs in a process that has run nothing.

        The old workers finish the batches that they are running.
        """
        for proxy in self._running().proxies.values():
            proxy.retiring = proxy.retiring or proxy.batches > 0
        self._assign()

    def confirm(self, run: Run, times: int = 3) -> list[Outcome]:
        """Execute `run` alone in a fresh worker, `times` times; return the outcomes."""
        return [self.run_alone([run])[0] for _ in range(times)]

    def allow(self, seconds: float | None) -> None:
        """Set the time limit of a run in seconds, at most the initial limit; None restores the initial limit.

        The reduction of a hang uses a short timeout, because it makes the program hang again and again.
        """
        usual = self._limits.seconds
        self._running().allow(usual if seconds is None else min(usual, seconds))

    def _running(self) -> WorkerSupervisor:
        if self._supervisor is None:
            raise ExecutionError("the pool is not open; use it as a context manager")
        return self._supervisor

    def _submit(self, runs: Sequence[Run], alone: bool) -> int:
        self._running()
        for run in runs:
            if run.target != self._origin.target:
                raise ExecutionError(f"a run on {run.target} was given to the pool of {self._origin.target}")
        number = next(self._numbers)
        batch = Batch(number, tuple(runs), number, encode_batch(number, runs), alone)
        self._open.add(number)
        if batch.runs:
            self._waiting.append(batch)
            self._assign()
        else:
            self._finish(batch)
        return number

    def _wait(self, ticket: int) -> list[Outcome]:
        while ticket not in self._done:
            self._turn(self._limits.seconds)
        return self._hand_out(ticket)

    def _turn(self, timeout: float) -> None:
        supervisor = self._running()
        supervisor.turn(timeout)
        for batch in supervisor.finished:
            self._finish(batch)
        supervisor.finished.clear()
        while supervisor.returned:
            batch = supervisor.returned.pop()
            batch.renew(next(self._numbers))
            self._waiting.appendleft(batch)
        self._assign()

    def _finish(self, batch: Batch) -> None:
        self._done[batch.ticket] = batch

    def _hand_out(self, ticket: int) -> list[Outcome]:
        self._open.remove(ticket)
        batch = self._done.pop(ticket)
        self.compiler_cpu_seconds += sum([outcome.observations.cpu_seconds for outcome in batch.outcomes])
        ours = next((one for one in batch.outcomes if isinstance(one, Raised) and one.kind == OURS), None)
        if ours is not None:
            raise ExecutionError(f"{self._origin.target} was given what cannot be built: {ours.message}")
        return batch.outcomes

    def _assign(self) -> None:
        supervisor = self._running()
        for proxy in [proxy for proxy in supervisor.proxies.values() if proxy.dispensable]:
            supervisor.replace_idle(proxy)
        while self._waiting:
            chosen = self._choose(supervisor, self._waiting[0].alone)
            if chosen is None:
                return
            batch = self._waiting.popleft()
            supervisor.give(chosen, batch)
            chosen.retiring = batch.alone or chosen.batches >= self._limits.recycle

    def _choose(self, supervisor: WorkerSupervisor, alone: bool) -> WorkerProxy | None:
        """Return the worker for the next batch, None when it must wait."""
        usable = [proxy for proxy in supervisor.proxies.values() if proxy.usable and len(proxy.inflight) < self._window]
        if not alone:
            return min(usable, key=lambda proxy: len(proxy.inflight), default=None)
        untouched = [proxy for proxy in usable if not proxy.batches]
        if untouched or not usable:
            return untouched[0] if untouched else None
        if any(proxy.retiring for proxy in supervisor.proxies.values()):
            return None
        chosen = min(usable, key=lambda proxy: len(proxy.inflight))
        if chosen.inflight:
            chosen.retiring = True
            return None
        return supervisor.replace_idle(chosen)
