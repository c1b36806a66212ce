"""The zygote client: starts a zygote process, requests forks of workers, and receives reports of their deaths."""

import contextlib
import dataclasses
import json
import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from miscompile.base.child import FROM_OUTSIDE, attend, start
from miscompile.base.errors import ExecutionError, UsageError
from miscompile.environments.pip import clean
from miscompile.environments.resolve import python_of
from miscompile.execution.flight_recorder import Printed
from miscompile.execution.limits import Limits
from miscompile.execution.zygote import PACKET
from miscompile.targets.registry import compiler_of, parse_target

READY_SECONDS = 180.0
"""Seconds that the import of a compiler may take."""

_LAST_WORDS = 300
_BORROW = """\
import importlib.util as u, json, runpy, sys
for name, home in json.loads(sys.argv.pop(1)).items():
    if name == 'miscompile' or u.find_spec(name) is None:
        s = u.spec_from_file_location(name, home + '/__init__.py', submodule_search_locations=[home])
        sys.modules[name] = m = u.module_from_spec(s)
        s.loader.exec_module(m)
runpy.run_module('miscompile.execution.zygote', run_name='__main__', alter_sys=True)
"""
"""Runs the zygote under another Python that may lack this package and the package that defines the target. All other
imports use that Python's own packages, and so does the target's package if it is installed there."""


@dataclass(frozen=True, slots=True)
class Forked:
    """A worker was forked."""

    key: int
    pid: int


@dataclass(frozen=True, slots=True)
class Exited:
    """A worker died; `status` is the wait status, `memory` its peak resident size in bytes, `cpu` its CPU seconds."""

    key: int
    status: int
    memory: int
    cpu: float


@dataclass(frozen=True, slots=True)
class Origin:
    """How to start workers: target spec, adapter path (None: the target's own), Python, extra environment variables.

    Without `python`, workers run in the virtual environment that the target spec names, or under this Python.
    """

    target: str
    adapter: str | None = None
    python: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    isolated: bool = False

    def resolved(self) -> "Origin":
        """Return this origin with the Python of the environment that its spec names, if it names one.

        Variables such as PYTHONPATH do not reach that Python. Raises SpecError for an unknown target,
        UsageError when the environment has not been made.
        """
        if self.python is not None or self.adapter is not None:
            return self
        python = python_of(self.target)
        return self if python is None else replace(self, python=str(python), isolated=True)

    def variables(self) -> dict[str, str]:
        """Return the environment variables of the workers."""
        inherited = clean(os.environ) if self.isolated else os.environ
        return {"PYTHONHASHSEED": "0", **inherited, **self.environment}

    def homes(self) -> dict[str, str]:
        """Return the folders of this package and of the package that defines the target, by name, for `_BORROW`."""
        brings = parse_target(self.target).about.package if self.adapter is None else ""
        found = {name: find_spec(name) for name in {"miscompile", brings.partition(".")[0] or "miscompile"}}
        return {name: str(Path(spec.origin).parent) for name, spec in found.items() if spec and spec.origin}

    def settings(self, limits: Limits) -> dict[str, Any]:
        """Return the zygote's first packet. Raises SpecError for an unknown target or option."""
        base: dict[str, Any] = {"target": self.target, "limits": dataclasses.asdict(limits)}
        if self.adapter is not None:
            return base | {"adapter": self.adapter, "options": {}, "known": "", "external": False}
        spec = parse_target(self.target)
        face = spec.about
        return base | {
            "target": face.name,
            "adapter": face.adapter,
            "prepare": face.prepare,
            "options": spec.options,
            "known": face.package,
            "via": spec.via,
            "external": compiler_of(face) is not None,
        }


class ZygoteKilledError(UsageError):
    """A zygote was killed from outside while it loaded the target, so that another attempt may succeed."""


class ZygoteClient:
    """One zygote process and the packets exchanged with it.

    The constructor raises UsageError when the target cannot be loaded.
    """

    def __init__(self, origin: Origin, limits: Limits) -> None:
        self._target = origin.target
        origin = origin.resolved()
        settings = origin.settings(limits)
        self.control, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._printed = Printed(Printed.create(limits.output))
        self._closed = False
        try:
            with other:
                self._process = start(
                    _command(origin, other.fileno()),
                    stdout=self._printed.fd,
                    stderr=self._printed.fd,
                    environment=origin.variables(),
                    keep=[other.fileno()],
                    bound=False,  # it binds itself to this process, whichever thread starts it
                )
        except OSError as error:
            self.control.close()
            self._printed.close()
            raise UsageError(f"target {self._target} cannot be loaded: {error}") from None
        try:
            self._await_ready(settings)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Process id of the zygote."""
        return self._process.pid

    def _await_ready(self, settings: dict[str, Any]) -> None:
        self.control.settimeout(READY_SECONDS)
        try:
            self.control.send(json.dumps(settings).encode("ascii"))
            packet = self.control.recv(PACKET)
        except TimeoutError:
            raise UsageError(
                f"target {self._target} cannot be loaded: importing it took more than {READY_SECONDS:.0f} s"
            ) from None
        except (BrokenPipeError, ConnectionResetError):
            packet = b""
        if not packet:
            code = self._process.wait()
            error = ZygoteKilledError if code in FROM_OUTSIDE else UsageError
            raise error(f"target {self._target} cannot be loaded: {_cause(code, self._printed.tail())}")
        answer = json.loads(packet)
        if "error" in answer:
            raise UsageError(f"target {self._target} cannot be loaded: {answer['error']}")
        self.control.settimeout(None)

    def fork(self, key: int, channel: socket.socket, recorder: int, printed: int) -> None:
        """Request a worker called `key` with these descriptors; `messages` returns the answer.

        `messages` also reports the death of the zygote; this method ignores it.
        """
        packet = json.dumps({"fork": key}).encode("ascii")
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(self.control, [packet], [channel.fileno(), recorder, printed])

    def messages(self) -> list[Forked | Exited] | None:
        """Return the zygote's messages since the last call; None when it has died and sent no more.

        Raises ExecutionError when the system refuses a fork.
        """
        found: list[Forked | Exited] = []
        while True:
            try:
                packet = self.control.recv(PACKET, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return found
            except ConnectionResetError:
                packet = b""
            if not packet:
                return found or None
            message = json.loads(packet)
            if "failed" in message:
                raise ExecutionError(f"a worker for target {self._target} could not be forked: {message['error']}")
            if "forked" in message:
                found.append(Forked(message["forked"], message["pid"]))
            else:
                found.append(Exited(message["exited"], message["status"], message["memory"], message["cpu"]))

    def close(self) -> None:
        """End the zygote and all of its workers, and wait for their end. May be called twice."""
        if self._closed:
            return
        self._closed = True
        self.control.close()
        attend(self._process, 5.0)
        self._printed.close()


def _command(origin: Origin, descriptor: int) -> list[str]:
    arguments = [str(descriptor), str(os.getpid())]
    if origin.python is None:
        return [sys.executable, "-P", "-m", "miscompile.execution.zygote", *arguments]
    return [origin.python, "-P", "-c", _BORROW, json.dumps(origin.homes()), *arguments]


def _cause(code: int, printed: str) -> str:
    how = f"was killed by signal {-code}" if code < 0 else f"exited with status {code}"
    words = " ".join(printed.split())[-_LAST_WORDS:]
    return f"its process {how}" + (f" after printing: {words}" if words else "")
