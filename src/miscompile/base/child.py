"""Child processes: started, heard, waited for, and killed with everything that they have started.

Compilers, their test suites and standalone scripts crash, hang, leave processes behind and use up the memory. So every
child leads a session of its own, which Ctrl-C in a terminal does not reach and which is killed as a whole; the kernel
kills a child whose parent ends in whatever way. `collect` runs a command to its end, `attend` waits for a child that
writes to a file, and a `Conversation` asks a child that answers line by line.

The functions at the end are for a child to call on itself, because only it knows when its imports are done.
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

File = int | IO[bytes] | None
"""A descriptor or an open file that a child reads or writes; None: an empty input, an output that is thrown away."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended, and what it printed.

    `status` is its exit status, negative for a signal, None when it was killed because its time was over; then
    `stdout` and `stderr` hold what it had printed by then. `seconds` is how long it ran.
    """

    status: int | None
    stdout: bytes
    stderr: bytes
    seconds: float

    def output(self, tail: int | None = None) -> str:
        """Return the last `tail` characters of its standard output, or all; what is no UTF-8 is replaced."""
        return _text(self.stdout, tail)

    def errors(self, tail: int | None = None) -> str:
        """Return the last `tail` characters of its standard error, or all; what is no UTF-8 is replaced."""
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

    It runs in `folder` and with exactly the variables of `environment`; None stands for our own. It inherits the
    descriptors `keep` besides the three. A `bound` child is killed when the thread that starts it ends, and so with
    this process too; a child that is not has to see to that itself. Raises OSError when it cannot be started.
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
    """Kill the processes of a group, given the process that leads it; nothing happens when none is left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # the latter: the number is another user's by now
        os.killpg(leader, signal.SIGKILL)


def kill(process: "subprocess.Popen[bytes]") -> int:
    """Kill a child of `start`, and whatever of its session is still running; return its exit status."""
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
    """Run `command` to its end, but for at most `seconds`, with `given` as its standard input; return what it printed.

    Nothing of its session is alive afterwards, however this ends. Raises OSError when it cannot be started.
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
    """Wait for a child, at most `seconds`; return its exit status, None when its time was over.

    `look` is called after each `every` seconds of the wait. Nothing of the child's session is alive afterwards, however
    this ends.
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
    """A child that lives long, is told things on its standard input and answers with lines on its standard output.

    A child that has died is not noticed by `say` but by `hear` and `lines`, because what it said before its end counts.
    `fileno` lets a selector wait for several of them.
    """

    def __init__(
        self, command: Sequence[str], *, errors: File = None, environment: Mapping[str, str] | None = None
    ) -> None:
        """Start `command`; the file `errors` gets its standard error. Raises OSError when it cannot be started."""
        pipe = subprocess.PIPE
        self._process = start(command, stdin=pipe, stdout=pipe, stderr=errors, environment=environment)
        self._lines: list[bytes] = []
        self._rest = b""
        self._status: int | None = None

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when the child says something, or ends."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def say(self, words: bytes) -> None:
        """Send `words` as they are; a line ends with its newline."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(words)
            self._process.stdin.flush()

    def hear(self, seconds: float | None = None) -> bytes | None:
        """Return the next line without its newline; None when the child has died, or says none within `seconds`."""
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
        """Wait until the child says something; return the lines that are whole now, None when it has died."""
        data = os.read(self.fileno(), _CHUNK)
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return lines

    def hang_up(self) -> None:
        """Close the child's standard input, by which it learns that nothing will follow."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # it ended before it had read everything
                self._process.stdin.close()

    def kill(self) -> int:
        """Kill the child with all that it has started; return its exit status.

        Another thread may call it; the one that waits in `hear` or `lines` then learns of the death.
        """
        if self._status is None:  # later, its number may be somebody else's
            self._status = kill(self._process)
        return self._status

    def end(self, patience: float | None = None) -> int:
        """Hang up, wait for the child's end and return its exit status; after `patience` seconds it is killed.

        The conversation is over. May be called twice.
        """
        self.hang_up()
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
    """Find the function before a fork, since loading takes locks that another thread may hold during the fork."""
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
