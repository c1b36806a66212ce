"""The supervisor of a zygote and its workers.

It drives the channels, notices deaths and overdue runs, attributes them, and keeps the number of workers constant.
`LocalPool` decides which batch goes to which worker.
"""

import itertools
import math
import selectors
import time
from dataclasses import replace

from miscompile.base.errors import ExecutionError
from miscompile.core.outcome import TimedOut
from miscompile.core.pool import Counters
from miscompile.execution.deaths import busy_with, outcome_of_death
from miscompile.execution.limits import Limits
from miscompile.execution.proxy import Batch, WorkerProxy
from miscompile.execution.zygote_client import Exited, Forked, Origin, ZygoteClient, ZygoteKilledError

MOST_STRIKES = 3
"""Workers that a batch may cost without a run to blame, before its next run is blamed."""

MOST_ZYGOTES = 5
"""Zygotes that may die without one outcome in between."""


class WorkerSupervisor:
    """`size` workers for one target.

    It appends batches with all outcomes to `finished`, and batches whose worker was lost before to `returned`; the
    owner empties both lists. Raises UsageError when the target cannot be loaded.
    """

    def __init__(self, origin: Origin, limits: Limits, size: int) -> None:
        self.proxies: dict[int, WorkerProxy] = {}
        self.finished: list[Batch] = []
        self.returned: list[Batch] = []
        self.counters = Counters()
        self._origin = origin
        self._limits = limits
        self._keys = itertools.count()
        self._fruitless = 0
        self._next_check = 0.0
        self._selector = selectors.DefaultSelector()
        self._zygote = self._open_zygote()
        for _ in range(size):
            self.spawn()

    @property
    def zygote(self) -> int:
        """Process id of the zygote."""
        return self._zygote.pid

    def close(self) -> None:
        """End all workers."""
        self._zygote.close()
        for proxy in self.proxies.values():
            proxy.close()
        self.proxies.clear()
        self._selector.close()

    def allow(self, seconds: float) -> None:
        """Set the time limit of a run in seconds."""
        self._limits = replace(self._limits, seconds=seconds)
        for proxy in self.proxies.values():
            proxy.limits = self._limits

    def spawn(self, death: float | None = None) -> WorkerProxy:
        """Start another worker; `death` is the monotonic time at which the one that it replaces was found dead."""
        proxy = WorkerProxy(next(self._keys), self._limits)
        proxy.replaced_at = death
        self._zygote.fork(proxy.key, proxy.far_end, proxy.recorder_fd, proxy.printed.fd)
        proxy.born()
        self.proxies[proxy.key] = proxy
        self._watch(proxy)
        self.counters = replace(self.counters, forks=self.counters.forks + 1)
        return proxy

    def replace_idle(self, proxy: WorkerProxy) -> WorkerProxy:
        """Start another worker instead of the idle one of `proxy`, and kill that one: it may be stopped or hang."""
        if not proxy.leaving:  # otherwise it is ending, and its process number may be another process's already
            proxy.kill()
        self._remove(proxy)
        return self.spawn()

    def _remove(self, proxy: WorkerProxy) -> None:
        """Remove `proxy`; its worker, if it lives, ends when it finds its channel closed."""
        del self.proxies[proxy.key]
        proxy.alive = False
        self._watch(proxy)
        proxy.close()

    def give(self, proxy: WorkerProxy, batch: Batch) -> None:
        """Send `batch` to `proxy`."""
        proxy.give(batch)
        self._watch(proxy)
        if batch.hung:  # its next run has less time than the one that the next check waits for
            self._next_check = min(self._next_check, time.monotonic() + proxy.seconds)

    def turn(self, timeout: float) -> None:
        """Wait up to `timeout` seconds for messages of workers and zygote, and handle them.

        Raises ExecutionError when workers can no longer be started.
        """
        patience = self._next_check - time.monotonic()
        for key, events in self._selector.select(max(0.0, min(timeout, patience))):
            if key.data is None:
                self._read_messages()
            elif key.data.key in self.proxies:
                self._serve(key.data, events)
        now = time.monotonic()
        if now >= self._next_check:
            self._check_clocks(now)
            # A run that begins later has a later deadline, so that no deadline lies before this check.
            patience = min((proxy.patience(now) for proxy in self.proxies.values() if proxy.inflight), default=math.inf)
            self._next_check = now + min(patience, self._limits.seconds)

    def _serve(self, proxy: WorkerProxy, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            proxy.flush()
        if events & selectors.EVENT_READ:
            self._collect(proxy.receive())
        if proxy.garbage or not proxy.alive:
            proxy.kill()  # a process that has lost its channel is of no use even if it lives
        self._watch(proxy)

    def _collect(self, finished: list[Batch]) -> None:
        if finished:
            self._fruitless = 0
            self.finished += finished

    def _watch(self, proxy: WorkerProxy) -> None:
        """Register the channel of `proxy` for the events that it waits for, unless the channel has ended."""
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if proxy.sending else 0) if proxy.alive else 0
        if events == proxy.watched:
            return
        if not proxy.watched:
            self._selector.register(proxy.channel, events, proxy)
        elif not events:
            self._selector.unregister(proxy.channel)
        else:
            self._selector.modify(proxy.channel, events, proxy)
        proxy.watched = events

    def _check_clocks(self, now: float) -> None:
        for proxy in self.proxies.values():
            if not proxy.inflight:
                continue
            if proxy.stuck(now):  # the zygote neither forked it nor reported its death
                self._replace_zygote()
                return
            if proxy.alive and proxy.victim is None and (place := proxy.overdue(now)) is not None:
                proxy.victim = (place.sequence, place.run)
                proxy.kill()

    # Forks and deaths ------------------------------------------------------------------------------------------------

    def _read_messages(self) -> None:
        messages = self._zygote.messages()
        if messages is None:
            self._replace_zygote()
            return
        for message in messages:
            proxy = self.proxies.get(message.key)
            match message:
                case Forked(_, pid) if proxy is not None:
                    self._born(proxy, pid)
                case Exited(_, status, memory, cpu) if proxy is not None:
                    self._remove_dead(proxy, status, memory, cpu)
                    self.spawn(time.monotonic())

    def _born(self, proxy: WorkerProxy, pid: int) -> None:
        proxy.pid = pid
        if proxy.replaced_at is not None:
            self.counters = replace(self.counters, respawn_seconds=time.monotonic() - proxy.replaced_at)
        if not proxy.alive or proxy.victim is not None:
            proxy.kill()

    def _remove_dead(self, proxy: WorkerProxy, status: int | None, memory: int = 0, cpu: float = 0.0) -> None:
        """Attribute the death of a worker and remove it; `status` is None when it died with its zygote."""
        self._collect(proxy.drain())
        if status is not None and not proxy.leaving:
            self.counters = replace(self.counters, deaths=self.counters.deaths + 1)
        if proxy.inflight:
            self._settle(proxy, status, memory, cpu)
        for batch in proxy.inflight:
            (self.finished if batch.complete else self.returned).append(batch)
        self._remove(proxy)

    def _settle(self, proxy: WorkerProxy, status: int | None, memory: int, cpu: float) -> None:
        """Give the run in progress the outcome of the death, if it is to blame."""
        batch = proxy.inflight[0]
        guilty = busy_with(proxy, batch) and (status is not None or proxy.victim is not None)
        batch.strikes += 0 if guilty or proxy.leaving else 1
        if not guilty and batch.strikes <= MOST_STRIKES:
            return
        outcome = outcome_of_death(proxy, batch, status, proxy.seconds, memory, cpu)
        if isinstance(outcome, TimedOut):
            self.counters = replace(self.counters, timeouts=self.counters.timeouts + 1)
        batch.outcomes.append(outcome)
        batch.strikes = 0
        self._fruitless = 0

    def _open_zygote(self) -> ZygoteClient:
        try:
            zygote = self._loaded()
        except OSError as error:
            reason = error.strerror or str(error)
            raise ExecutionError(
                f"workers for {self._origin.target} cannot be started: {reason}; make room for them"
            ) from None
        self._selector.register(zygote.control, selectors.EVENT_READ)
        return zygote

    def _loaded(self) -> ZygoteClient:
        """Return a zygote that has loaded the target. One that is killed meanwhile is replaced a few times."""
        for _ in range(MOST_ZYGOTES - 1):
            try:
                return ZygoteClient(self._origin, self._limits)
            except ZygoteKilledError:
                self.counters = replace(self.counters, zygotes=self.counters.zygotes + 1)
        return ZygoteClient(self._origin, self._limits)

    def _replace_zygote(self) -> None:
        """Start another zygote after the present one has died, and with it its workers."""
        self._fruitless += 1
        self.counters = replace(self.counters, zygotes=self.counters.zygotes + 1)
        self._selector.unregister(self._zygote.control)
        proxies = list(self.proxies.values())
        for proxy in proxies:
            proxy.kill()
            self._remove_dead(proxy, None)
        self._zygote.close()
        if self._fruitless > MOST_ZYGOTES:
            raise ExecutionError(f"the zygote of target {self._origin.target} keeps dying")
        self._zygote = self._open_zygote()
        for _ in proxies:
            self.spawn()
