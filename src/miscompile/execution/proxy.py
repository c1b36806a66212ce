"""The parent's side of one worker: its channel, its flight recorder, and the batches that it was given."""

import contextlib
import math
import os
import select
import signal
import socket
import time
from collections import deque
from dataclasses import dataclass, field

from miscompile.base.child import kill_group
from miscompile.base.errors import ExecutionError
from miscompile.core.outcome import Outcome, TimedOut
from miscompile.core.run import Run
from miscompile.execution.flight_recorder import Position, Printed, Recorder
from miscompile.execution.frames import CHUNK, Frame, FrameBuffer
from miscompile.execution.limits import Limits, cpu_seconds_of, seconds_after_hang, strain
from miscompile.execution.wire import ReplyDecoder, answered_by, encode_batch

STALL_SECONDS = 30.0
"""Seconds beyond the time limit of a run during which a worker may send nothing."""

_CPU_CHECK = 1.0
"""Seconds between two looks at the CPU time of a run that has outlasted its limit on a busy machine."""

Runs = tuple[Run, ...]


@dataclass(slots=True)
class Batch:
    """Runs that were submitted together.

    `outcomes` grows in order. Runs from `offset` on were given to the present worker under number `sequence`;
    `frame` is the request that was encoded for them, until it is sent.
    `strikes` counts the workers that were lost without a run to blame and without an outcome in between.
    """

    ticket: int
    runs: Runs
    sequence: int
    frame: bytes | None
    alone: bool = False
    outcomes: list[Outcome] = field(default_factory=list)
    offset: int = 0
    strikes: int = 0
    decoder: ReplyDecoder = field(default_factory=ReplyDecoder)

    @property
    def complete(self) -> bool:
        """Whether every run has its outcome."""
        return len(self.outcomes) == len(self.runs)

    @property
    def hung(self) -> bool:
        """Whether one of its runs has exceeded the time limit."""
        return any(isinstance(one, TimedOut) for one in self.outcomes)

    @property
    def awaited(self) -> tuple[int, int]:
        """The sequence number and the index, counted from `offset`, of the next run without outcome."""
        return self.sequence, len(self.outcomes) - self.offset

    @property
    def todo(self) -> Runs:
        """The runs from `offset` on."""
        return self.runs[self.offset :]

    def renew(self, sequence: int) -> None:
        """Prepare the runs without outcome to be given to another worker under the number `sequence`."""
        self.sequence = sequence
        self.offset = len(self.outcomes)
        self.decoder = ReplyDecoder()
        self.frame = encode_batch(sequence, self.todo)


class WorkerProxy:
    """A worker as its pool sees it.

    `alive` until the end of its channel is seen; `retiring` when it gets no more work; `leaving` when it announced its
    own end; `watched` are the selector events that its channel is registered for. `limits` may be replaced at any time.
    `victim` is the (sequence, index) of the run for which it was killed; `garbage` describes a malformed reply.
    """

    def __init__(self, key: int, limits: Limits) -> None:
        self.key = key
        self.pid: int | None = None
        self.alive = True
        self.retiring = False
        self.leaving = False
        self.victim: tuple[int, int] | None = None
        self.garbage = ""
        self.batches = 0
        self.watched = 0
        self.inflight: deque[Batch] = deque()
        self.channel, self.far_end = socket.socketpair()
        self.channel.setblocking(False)
        self.recorder_fd = Recorder.create()
        self.recorder = Recorder(self.recorder_fd)
        self.printed = Printed(Printed.create(limits.output))
        self.replaced_at: float | None = None
        self.limits = limits
        self._outbox: deque[memoryview] = deque()
        self._buffer = FrameBuffer()
        self._active = time.monotonic()

    @property
    def usable(self) -> bool:
        """Whether it may be given a batch."""
        return self.alive and not (self.retiring or self.leaving)

    @property
    def dispensable(self) -> bool:
        """Whether it is idle, gets no more work, and was not killed for a run."""
        ending = self.alive and self.victim is None and (self.retiring or self.leaving)
        return ending and not self.inflight

    @property
    def sending(self) -> bool:
        """Whether bytes wait for the channel to become writable."""
        return bool(self._outbox)

    def born(self) -> None:
        """Close the descriptors that only the child needs, after the request to fork was sent."""
        self.far_end.close()
        os.close(self.recorder_fd)

    def give(self, batch: Batch) -> None:
        """Send the request of `batch`, whose runs from `offset` on have no outcome yet."""
        assert batch.frame is not None
        self.batches += 1
        if not self.inflight:
            self._active = time.monotonic()
        self.inflight.append(batch)
        self._outbox.append(memoryview(batch.frame))
        batch.frame = None
        self.flush()

    def flush(self) -> None:
        """Send as many bytes as the channel accepts without blocking."""
        try:
            while self._outbox:
                sent = self.channel.send(self._outbox[0])
                self._active = time.monotonic()
                if sent == len(self._outbox[0]):
                    self._outbox.popleft()
                else:
                    self._outbox[0] = self._outbox[0][sent:]
        except BlockingIOError:
            return
        except (BrokenPipeError, ConnectionResetError):
            self._outbox.clear()  # it is dead, as the next read will show

    def receive(self) -> list[Batch]:
        """Read the replies that have arrived, without blocking; return the batches that are complete now.

        Sets `garbage` after a malformed reply, and clears `alive` when the channel has ended.
        """
        finished: list[Batch] = []
        try:
            while count := self._buffer.receive(self.channel):
                self._active = time.monotonic()
                if not self.garbage:
                    self._take_replies(finished)
                if count < CHUNK:
                    return finished
            self._ended()
        except BlockingIOError:
            return finished
        except ConnectionResetError:
            self._ended()
        except ExecutionError as error:
            self.garbage = str(error)
        return finished

    def _ended(self) -> None:
        self.alive = False
        self._active = time.monotonic()

    def _take_replies(self, finished: list[Batch]) -> None:
        while (frame := self._buffer.take()) is not None:
            if not self.inflight:
                raise ExecutionError("a reply to no request")
            self._take_reply(frame, finished)

    def _take_reply(self, frame: Frame, finished: list[Batch]) -> None:
        batch = self.inflight[0]
        reply = batch.decoder.decode(frame)
        if (reply.sequence, reply.run) != batch.awaited:
            raise ExecutionError("a reply out of order")
        batch.outcomes.append(reply.outcome)
        batch.strikes = 0
        self.leaving = self.leaving or reply.leaving
        if batch.complete:
            finished.append(self.inflight.popleft())

    def overdue(self, now: float) -> Position | None:
        """Return the run that has exceeded its time limit at monotonic time `now`, None if there is none."""
        place, allowed = self.recorder.read(), self._allowed
        if place.timed and self._exhausted(now - place.start, allowed) and self.recorder.read() == place:
            return place
        return place if now - self._active > allowed + STALL_SECONDS else None

    def _exhausted(self, took: float, allowed: float) -> bool:
        """Tell whether a run has had its time: the wall-clock time `allowed`, or its limit in CPU time."""
        if not took <= allowed:
            return True
        if took <= self.seconds or self.pid is None:
            return False
        return cpu_seconds_of(self.pid) - self.recorder.cpu_before() > self.seconds

    def stuck(self, now: float) -> bool:
        """Tell whether the channel was silent for so long that the worker cannot have been killed."""
        return now - self._active > self._allowed + 2 * STALL_SECONDS

    def patience(self, now: float) -> float:
        """Return the seconds from `now` until `overdue` must be called again."""
        place, allowed = self.recorder.read(), self._allowed
        rest = place.start + allowed - now if place.timed else allowed
        if place.timed and allowed > self.seconds:  # its CPU time may be over before
            rest = min(rest, max(place.start + self.seconds - now, _CPU_CHECK))
        return min(max(rest, 0.001), allowed) if not math.isnan(rest) else 0.001

    @property
    def seconds(self) -> float:
        """The time limit of the run in progress on an idle machine."""
        hung = bool(self.inflight) and self.inflight[0].hung
        return seconds_after_hang(self.limits.seconds) if hung else self.limits.seconds

    @property
    def _allowed(self) -> float:
        """Seconds that a run may take under the present load of the machine."""
        return self.seconds * strain()

    def kill(self) -> None:
        """Kill the worker and all processes of its group."""
        self.retiring = True
        if self.pid is not None:
            kill_group(self.pid)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, signal.SIGKILL)  # it may not lead a group yet

    def drain(self) -> list[Batch]:
        """Read the replies that a dead worker sent or held; return the batches that they complete."""
        finished: list[Batch] = []
        while self.alive and select.select([self.channel], [], [], 0.5)[0]:
            finished += self.receive()
        self._salvage(finished)
        return finished

    def _salvage(self, finished: list[Batch]) -> None:
        held = FrameBuffer()
        held.feed(self.recorder.held())
        try:
            while self.inflight and (frame := held.take()) is not None:
                if answered_by(frame) == self.inflight[0].awaited:  # otherwise it was sent as well
                    self._take_reply(frame, finished)
        except ExecutionError as error:
            self.garbage = self.garbage or str(error)

    def close(self) -> None:
        """Release the channel and the memory files."""
        self.alive = False
        self.channel.close()
        self.recorder.close()
        self.printed.close()
