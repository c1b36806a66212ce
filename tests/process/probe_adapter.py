"""A target whose programs are orders: misbehave in a given way at a given stage. Imports no compiler."""

import ctypes
import json
import mmap
import os
import signal
import stat
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from miscompile.base.errors import SpecError
from miscompile.core.case import Feed, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Tensor

_COUNT = [0]


class StrangeError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


def _channel() -> int:
    for name in os.listdir("/proc/self/fd"):
        try:
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                return int(name)
        except OSError:
            continue
    raise LookupError("no socket")


def _eat() -> None:
    eaten = []
    while True:
        eaten.append(np.empty(1 << 26, np.uint8))


def _abort_for_memory() -> None:
    os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\n")
    os.abort()


def _raise(error: BaseException) -> None:
    raise error


def _garbage() -> None:
    os.write(_channel(), b"garbage " * 1000)
    time.sleep(60)


def _hang_up() -> None:
    os.close(_channel())
    time.sleep(60)


def _kill_zygote() -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)


ORDERS: dict[str, Any] = {
    "segv": lambda: ctypes.string_at(0),
    "abort": os.abort,
    "loop": lambda: time.sleep(60),
    "spin": lambda: all(zero == 0 for zero in iter(int, 1)),
    "eat": _eat,
    "bad_alloc": _abort_for_memory,
    "no_map": lambda: mmap.mmap(-1, 1 << 40),
    "print": lambda: print("x" * 50_000_000),
    "write": lambda: [os.write(1, b"y" * 1000) for _ in range(20)],
    "libc": lambda: ctypes.CDLL(None).puts(b"from libc"),
    "garbage": _garbage,
    "hang_up": _hang_up,
    "exit": lambda: sys.exit(3),
    "os_exit": lambda: os._exit(3),
    "error": lambda: _raise(ValueError("bad axis 7")),
    "unmeant": lambda: _raise(SpecError("no such pattern")),
    "strange": lambda: _raise(StrangeError()),
    "sleep": lambda: time.sleep(0.2),
    "child": lambda: os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "60"),
    "kill_zygote": _kill_zygote,
    "log": lambda: os.write(2, b"fired: Fold\nfired: Fuse\n"),
}


class ProbeSession:
    def __init__(self, order: dict[str, Any]) -> None:
        self._order = order

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        if "run" in self._order:
            ORDERS[self._order["run"]]()
        if self._order.get("scribble"):
            feed[0].array[...] = 9
        if self._order.get("wrong"):
            return (Tensor("float32", np.zeros(2, np.int64)),)
        if "size" in self._order:
            return (Tensor("uint8", np.zeros(self._order["size"], np.uint8)),)
        if self._order.get("count"):
            _COUNT[0] += 1
            return (Tensor("int64", np.array(_COUNT[0])),)
        if self._order.get("poison"):
            _COUNT[0] = -100
        if self._order.get("brittle") and _COUNT[0] < 0:
            ctypes.string_at(0)
        return (*(Tensor(t.dtype, t.array + 1) for t in feed), None)

    def __del__(self) -> None:
        if self._order.get("collect"):
            ORDERS[self._order["collect"]]()


class Probe:
    def build(self, program: Program, build: Build) -> ProbeSession:
        order = json.loads(program.payload)
        if "compile" in order:
            ORDERS[order["compile"]]()
        return ProbeSession(order)

    def fired(self, log: str) -> tuple[str, ...]:
        return tuple(line.removeprefix("fired: ") for line in log.splitlines() if line.startswith("fired: "))


class DiesAtImport:
    def __init__(self) -> None:
        print("about to die", flush=True)
        ctypes.string_at(0)


class KilledAtFirstImport(Probe):
    """Another process kills it while it is loaded, until the file that PROBE_LOADED names exists."""

    def __init__(self) -> None:
        super().__init__()
        loaded = Path(os.environ["PROBE_LOADED"])
        if not loaded.exists():
            loaded.touch()
            os.kill(os.getpid(), signal.SIGKILL)


class KilledAtImport:
    def __init__(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class Unloadable:
    def __init__(self) -> None:
        raise ModuleNotFoundError("No module named 'probecompiler'")
