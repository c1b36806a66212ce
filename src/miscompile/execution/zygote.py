"""The zygote: a process that has imported a compiler, has compiled nothing, and forks workers on request.

Most compilers hang when they are forked after a compilation, and importing one takes up to seconds; a fork takes
milliseconds. Run as `python -m miscompile.execution.zygote DESCRIPTOR PARENT`. Messages are JSON, one a packet:

    first packet    {"target", "adapter", "prepare", "options", "limits", "known"}
    answer          {"ready": true} or {"error": text}
    {"fork": key}   with three descriptors: channel, recorder, printed text
    answer          {"forked": key, "pid": n} or {"failed": key, "error": text}
    on a death      {"exited": key, "status": wait status, "memory": peak resident bytes}
"""

import contextlib
import ctypes
import gc
import json
import os
import select
import signal
import socket
import sys
import traceback
import warnings
from typing import Any

from miscompile.base.child import die_with_parent, kill_group
from miscompile.execution.flight_recorder import Printed, Recorder
from miscompile.execution.limits import Limits
from miscompile.execution.worker import Workplace
from miscompile.execution.worker import main as work
from miscompile.targets.about import Adapter
from miscompile.targets.known import Known, known_in
from miscompile.targets.registry import load_attribute

PACKET = 1 << 16
RARELY = (20_000, 20, 50)
"""Thresholds of the workers' garbage collector: rare, because reference counts free nearly all objects of a run."""
_FAILED = 70


class Zygote:
    """Serves fork requests on `control` and reports the deaths of its children."""

    def __init__(
        self, control: socket.socket, adapter: Adapter, expected: Known, limits: Limits, *, external: bool
    ) -> None:
        self._control = control
        self._adapter = adapter
        self._known = expected
        self._limits = limits
        self._external = external
        self._pid = os.getpid()
        self._children: dict[int, tuple[int, int]] = {}  # descriptor of the process -> (pid, key)
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)

    def serve(self) -> None:
        """Serve until the parent closes its end of the socket; then kill all workers and return."""
        while True:
            for fd, _ in self._poll.poll():
                if fd != self._control.fileno():
                    self._reap(fd)
                elif not self._request():
                    self._end()
                    return

    def _request(self) -> bool:
        packet, fds, _, _ = socket.recv_fds(self._control, PACKET, 3, socket.MSG_CMSG_CLOEXEC)
        if not packet:
            return False
        key = json.loads(packet)["fork"]
        try:
            pid = os.fork()
        except OSError as error:
            self._send({"failed": key, "error": str(error)})
        else:
            if not pid:
                self._child(fds)
            self._adopt(pid, key)
        finally:
            for fd in fds:
                os.close(fd)
        return True

    def _adopt(self, pid: int, key: int) -> None:
        fd = os.pidfd_open(pid)
        self._children[fd] = (pid, key)
        self._poll.register(fd, select.POLLIN)
        self._send({"forked": key, "pid": pid})

    def _child(self, fds: list[int]) -> None:
        """Become a worker; never returns."""
        status = _FAILED
        try:
            self._control.close()
            for fd in self._children:
                os.close(fd)
            channel = socket.socket(fileno=fds[0])
            place = Workplace(self._adapter, self._known, Recorder(fds[1]), Printed(fds[2]), self._external)
            work(place, channel, self._limits, self._pid)
            status = 0
        except BaseException:  # noqa: BLE001 - no exception may reach the zygote's own loop
            traceback.print_exc()
        finally:
            os._exit(status)

    def _reap(self, fd: int) -> None:
        pid, key = self._children.pop(fd)
        self._poll.unregister(fd)
        os.close(fd)
        # While the dead worker is unreaped its process group cannot be taken by others.
        kill_group(pid)
        _, status, usage = os.wait4(pid, 0)
        cpu = usage.ru_utime + usage.ru_stime
        self._send({"exited": key, "status": status, "memory": usage.ru_maxrss << 10, "cpu": cpu})

    def _end(self) -> None:
        for pid, _ in self._children.values():
            kill_group(pid)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)  # it may not lead a group yet
        for pid, _ in self._children.values():
            os.waitpid(pid, 0)

    def _send(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._control.send(json.dumps(message).encode("ascii"))


def start_anew(settings: dict[str, Any]) -> None:
    """Run the target's `prepare`; replace this process by one with the variables it asks for, unless they are set."""
    if not settings.get("prepare"):
        return
    wanted: dict[str, str] = load_attribute(settings["prepare"])()
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.environ.update(wanted)
        ctypes.CDLL(None).fflush(None)
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def prepare(settings: dict[str, Any]) -> tuple[Adapter, Known, Limits]:
    """Load the adapter that `settings` name and construct it. Raises the errors of the compiler's import."""
    adapter: Adapter = load_attribute(settings["adapter"])(**settings["options"])
    expected = known_in(settings["known"], settings.get("via", "")) if settings["known"] else Known((), ())
    return adapter, expected, Limits(**settings["limits"])


def main(descriptor: int, parent: int) -> int:
    """Load the adapter, report, serve. Returns the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent(parent)
    warnings.simplefilter("ignore")
    control = socket.socket(fileno=descriptor)
    settings = json.loads(control.recv(PACKET, socket.MSG_PEEK))  # peeked, because a restarted process reads it again
    try:
        start_anew(settings)
        control.set_inheritable(False)
        control.recv(PACKET)
        adapter, expected, limits = prepare(settings)
    except BaseException as error:  # noqa: BLE001 - importing a compiler may raise any exception
        text = " ".join(f"{type(error).__name__}: {error}".split())
        control.send(json.dumps({"error": text[:2_000]}).encode("ascii"))
        return 1
    gc.collect()
    gc.freeze()
    gc.set_threshold(*RARELY)
    ctypes.CDLL(None).fflush(None)  # otherwise every child would print the text that is buffered here
    control.send(b'{"ready": true}')
    Zygote(control, adapter, expected, limits, external=settings["external"]).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
