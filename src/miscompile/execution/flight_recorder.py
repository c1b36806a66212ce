"""The flight recorder of a worker: its position, the replies that it has not sent yet, and its printed text.

All lie in memory files that the parent holds as well. So the parent can attribute a death or a hang to the exact run
and stage, keep the outcomes that were finished before, and read the printed text, whatever state the worker is in.
"""

import fcntl
import mmap
import os
import struct
import time
from typing import NamedTuple

from miscompile.core.outcome import Stage

IDLE, LOAD, COMPILE, RUN, COLLECT, REPLY = range(6)
"""Steps of a worker. In `IDLE` and `REPLY` it waits for its parent, and no time limit applies."""

TAIL = 2_000
"""Characters of printed text that an outcome keeps."""

_STAGES: dict[int, Stage] = {LOAD: "load", COMPILE: "compile", RUN: "run", COLLECT: "collect", REPLY: "collect"}
_RECORD = struct.Struct("<dQII")
_STEP = struct.Struct("<I")
_STEP_AT = 20
_HELD = struct.Struct("<I")
_HELD_AT = 24
_CLOCK = struct.Struct("<d")
_CLOCK_AT = 32
_HELD_FROM = 40
_SIZE = 1 << 20


class Position(NamedTuple):
    """Where a worker is: run number `run` of batch `sequence`, begun at `start` (seconds of the monotonic clock)."""

    start: float
    sequence: int
    run: int
    step: int

    @property
    def stage(self) -> Stage:
        """The stage of the run; sending its outcome belongs to the stage `collect`."""
        return _STAGES.get(self.step, "run")

    @property
    def timed(self) -> bool:
        """Whether the time limit of a run applies now."""
        return LOAD <= self.step <= COLLECT


class Recorder:
    """A flight recorder: the worker writes its position at every step, the parent reads it at any time.

    The memory after the position holds replies that are finished and not yet sent, so that they survive the worker.
    """

    def __init__(self, fd: int) -> None:
        self._memory = mmap.mmap(fd, _SIZE)
        self._end = _HELD_FROM

    @staticmethod
    def create() -> int:
        """Return the descriptor of a new, idle recorder."""
        fd = os.memfd_create("miscompile-recorder")
        os.ftruncate(fd, _SIZE)
        return fd

    def begin(self, sequence: int, index: int) -> None:
        """Note that run `index` of batch `sequence` begins now."""
        # The start is written first: a reader in between sees a new start with an old run, never an old start with a
        # new run, which would look like a run that hangs.
        _RECORD.pack_into(self._memory, 0, time.monotonic(), sequence, index, LOAD)

    def step(self, step: int) -> None:
        """Note the next step of the run in progress, or `IDLE`."""
        _STEP.pack_into(self._memory, _STEP_AT, step)

    def compiling(self, cpu: float) -> None:
        """Note that the compiler begins, when the process has used `cpu` seconds of CPU time."""
        _CLOCK.pack_into(self._memory, _CLOCK_AT, cpu)
        self.step(COMPILE)

    def cpu_before(self) -> float:
        """Return the CPU seconds that the worker had used when it last gave a program to the compiler."""
        seconds: float = _CLOCK.unpack_from(self._memory, _CLOCK_AT)[0]
        return seconds

    def hold(self, reply: bytes) -> bool:
        """Append `reply` to the held replies; return False when it does not fit."""
        end = self._end + len(reply)
        if end > _SIZE:
            return False
        self._memory[self._end : end] = reply
        self._end = end
        _HELD.pack_into(self._memory, _HELD_AT, end - _HELD_FROM)
        return True

    def release(self) -> None:
        """Discard the held replies after they were sent."""
        self._end = _HELD_FROM
        _HELD.pack_into(self._memory, _HELD_AT, 0)

    def held(self) -> bytes:
        """Return the replies that a dead worker held; it may have sent some of them."""
        return self._memory[_HELD_FROM : _HELD_FROM + _HELD.unpack_from(self._memory, _HELD_AT)[0]]

    def read(self) -> Position:
        """Return the last position; while the worker lives, a reader must read twice and compare."""
        return Position(*_RECORD.unpack_from(self._memory, 0))

    def close(self) -> None:
        """Release the memory."""
        self._memory.close()


class Printed:
    """The text that a worker printed to descriptors 1 and 2 since the last `reset`.

    A memory file of fixed size, sealed against growth, whose file offset all holders share: a write beyond the end
    fails, and the offset is the length of the text.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._capacity = os.fstat(fd).st_size

    @staticmethod
    def create(limit: int) -> int:
        """Return the descriptor of a new file for `limit` bytes."""
        fd = os.memfd_create("miscompile-printed", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, limit)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
        return fd

    def reset(self) -> None:
        """Discard the text."""
        os.lseek(self.fd, 0, os.SEEK_SET)

    def text(self) -> str:
        """Return all of the text; undecodable bytes are replaced."""
        length = self._length()
        return os.pread(self.fd, length, 0).decode("utf-8", "replace") if length else ""

    def tail(self, characters: int = TAIL) -> str:
        """Return the last `characters` characters."""
        if not os.lseek(self.fd, 0, os.SEEK_CUR):  # most runs print nothing
            return ""
        length = self._length()
        wanted = min(length, 4 * characters)
        return os.pread(self.fd, wanted, length - wanted).decode("utf-8", "replace")[-characters:]

    def _length(self) -> int:
        return min(os.lseek(self.fd, 0, os.SEEK_CUR), self._capacity)

    def close(self) -> None:
        """Release the descriptor."""
        os.close(self.fd)
