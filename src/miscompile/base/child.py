"""Child processes: starting them, reading their output, waiting for them, killing them with all their descendants.

Compilers, their test suites and standalone scripts crash, hang, leave processes behind and use up the memory. So every
child leads a session of its own. Ctrl-C in a terminal does not reach that session, and `kill` ends all of its
processes. The kernel kills a child whose parent ends in whatever way. `collect` runs a command to its end, `attend`
waits for a child that writes to a file, and a `Conversation` exchanges requests and lines with a long-lived child.

A child calls the functions at the end of this module on itself, because only it knows when its imports are done.
"""

import contextlib
import ctypes
import functools
import os
import resource
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_PR_SET_PDEATHSIG = 1
_CHUNK = 1 << 16

FROM_OUTSIDE = (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGHUP)
"""Exit statuses of a child that the kernel, for want of memory, or a person ended."""

File = int | IO[bytes] | None
"""A descriptor or an open file that a child reads or writes; None stands for an empty input or a discarded output."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The exit status of a child and its output.

    `status` is negative for a signal, and None when the child was killed because its time limit was over; `stdout` and
    `stderr` then hold the output up to that moment. `seconds` is the wall-clock time that it ran.
    """

    status: int | None
    stdout: bytes
    stderr: bytes
    seconds: float

    def output(self, tail: int | None = None) -> str:
        """Return the last `tail` characters of its standard output, or all; invalid UTF-8 is replaced."""
        return _text(self.stdout, tail)

    def errors(self, tail: int | None = None) -> str:
        """Return the last `tail` characters of its standard error, or all; invalid UTF-8 is replaced."""
        return _text(self.stderr, tail)


def start(
    command: Sequence[str],
    *,
    stdin: File = None,
    stdout: File = None,
    stderr: File = None,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    keep: Iterable[int] = (),
    bound: bool = True,
) -> "subprocess.Popen[bytes]":
    """Start `command` as the leader of a session of its own; `kill` ends it.

    It runs in `folder` and with exactly the variables of `environment`; None stands for those of this process. It
    inherits the descriptors `keep` besides the standard three. The kernel kills a `bound` child when the thread that
    starts it ends, hence also when this process ends; any other child calls `die_with_parent` itself. Raises OSError
    when it cannot be started.
    """
    prepare = functools.partial(_bind, _prctl(), os.getpid()) if bound else None
    return subprocess.Popen(
        command,
        stdin=_or_none(stdin),
        stdout=_or_none(stdout),
        stderr=_or_none(stderr),
        cwd=folder,
        env=environment,
        pass_fds=tuple(keep),
        start_new_session=True,
        preexec_fn=prepare,
    )


def kill_group(leader: int) -> None:
    """Kill all processes of the group that the process `leader` leads; do nothing when none is left."""
    # PermissionError: the process number was reused by another user.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def kill(process: "subprocess.Popen[bytes]") -> int:
    """Kill a child of `start` and every process of its session that still runs; return its exit status."""
    kill_group(process.pid)
    return process.wait()


def collect(
    command: Sequence[str],
    *,
    given: bytes | None = None,
    seconds: float | None = None,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run `command` for at most `seconds`, with `given` as its standard input; return its status and output.

    No process of its session is alive afterwards, whether this returns or raises. Raises OSError when it cannot be
    started.
    """
    began, pipe = time.monotonic(), subprocess.PIPE
    stdin = None if given is None else pipe
    with start(command, stdin=stdin, stdout=pipe, stderr=pipe, folder=folder, environment=environment) as process:
        status: int | None
        try:
            out, err = process.communicate(given, seconds)
            status = process.returncode
        except subprocess.TimeoutExpired as stopped:
            out, err, status = stopped.stdout or b"", stopped.stderr or b"", None
        finally:
            kill(process)
    return Ended(status, out, err, time.monotonic() - began)


def attend(
    process: "subprocess.Popen[bytes]",
    seconds: float | None = None,
    every: float | None = None,
    look: Callable[[], None] | None = None,
) -> int | None:
    """Wait for a child, at most `seconds`; return its exit status, None when the time was over.

    `look` is called after each `every` seconds of the wait. No process of the child's session is alive afterwards,
    whether this returns or raises.
    """
    end = None if seconds is None else time.monotonic() + seconds
    try:
        while True:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                return None
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(min((wait for wait in (left, every) if wait is not None), default=None))
            if look is not None:
                look()
    finally:
        kill(process)


class Conversation:
    """A long-lived child that gets requests on its standard input and answers with lines on its standard output.

    `read_line` and `lines` report the death of the child and `write` does not, because the lines that the child wrote
    before its death still count. `fileno` lets a selector wait for several children.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        errors: File = None,
        environment: Mapping[str, str] | None = None,
        bound: bool = True,
    ) -> None:
        """Start `command` with `errors` as its standard error; `bound` as for `start`.

        Raises OSError when it cannot be started.
        """
        pipe = subprocess.PIPE
        self._process = start(command, stdin=pipe, stdout=pipe, stderr=errors, environment=environment, bound=bound)
        self._lines: list[bytes] = []
        self._rest = b""
        self._unsent = b""
        self._status: int | None = None

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when the child writes or ends."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def write(self, data: bytes) -> None:
        """Write `data` unchanged, without a newline of its own, to the child's standard input."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(data)
            self._process.stdin.flush()

    def offer(self, data: bytes) -> bool:
        """Write `data` after the rest of earlier offers, as far as the pipe takes it; tell whether all is written.

        Unlike `write` it never waits for a child that does not read.
        """
        assert self._process.stdin is not None
        place, self._unsent = self._process.stdin.fileno(), self._unsent + data
        os.set_blocking(place, False)
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(place, self._unsent) :]
        except BlockingIOError:
            return False
        except BrokenPipeError:
            self._unsent = b""
        finally:
            os.set_blocking(place, True)
        return True

    def read_line(self, seconds: float | None = None) -> bytes | None:
        """Return the next line without its newline; None when the child has died, or writes none within `seconds`."""
        end = None if seconds is None else time.monotonic() + seconds
        while not self._lines:
            left = None if end is None else max(end - time.monotonic(), 0.0)
            if not select.select([self], [], [], left)[0]:
                return None
            lines = self.lines()
            if lines is None:
                return None
            self._lines = lines
        return self._lines.pop(0)

    def lines(self) -> list[bytes] | None:
        """Wait until the child writes; return the lines that are complete now, None when it has died."""
        data = os.read(self.fileno(), _CHUNK)
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return lines

    def close_input(self) -> None:
        """Close the child's standard input, which tells the child that no request will follow."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # it ended before it had read all of its input
                self._process.stdin.close()

    def terminate(self) -> None:
        """Send SIGTERM to the child alone, which asks it to stop. Another thread may call it."""
        if self._status is None:
            self._process.terminate()

    def kill(self) -> int:
        """Kill the child and all processes of its session; return its exit status.

        Another thread may call it; the thread that waits in `read_line` or `lines` then gets None.
        """
        if self._status is None:  # once it is reaped, its number may belong to another process
            self._status = kill(self._process)
        return self._status

    def end(self, patience: float | None = None) -> int:
        """Close the child's input, wait until it ends and return its exit status; kill it after `patience` seconds.

        May be called twice; no other method may be called afterwards.
        """
        self.close_input()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        status = self.kill()
        if self._process.stdout is not None:
            self._process.stdout.close()
        return status


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the process `parent`, which started it, ends in whatever way."""
    _bind(_prctl(), parent)


def limit_memory(extra: int | None) -> None:
    """Make allocation fail once the address space of this process has grown by `extra` bytes; forbid core dumps.

    None sets no limit.
    """
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if extra is not None:
        size = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize() + extra
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (size if hard == resource.RLIM_INFINITY else min(size, hard), hard))


def lift_memory_limit() -> None:
    """Undo `limit_memory`, so that a process that ran out of memory can still tell so."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


@functools.cache
def _prctl() -> Callable[..., int]:
    """Return `prctl`, loaded before the fork because loading takes locks that another thread may hold during it."""
    found: Callable[..., int] = ctypes.CDLL(None).prctl
    return found


def _bind(prctl: Callable[..., int], parent: int) -> None:
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the call took effect
        os._exit(0)


def _or_none(file: File) -> int | IO[bytes]:
    return subprocess.DEVNULL if file is None else file


def _text(data: bytes, tail: int | None) -> str:
    text = data.decode("utf-8", "replace")
    return text if tail is None else text[-tail:]
