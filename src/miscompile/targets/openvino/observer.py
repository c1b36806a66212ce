"""The preloaded library that counts and switches passes: its compilation, and Python wrappers of its functions.

The library is `shim.cpp`, which includes `switch.cpp`. It is compiled on first use against the headers of the
installed OpenVINO and cached in the user's cache folder, under a name that identifies version, source and machine. This
module does not import the compiler.
"""

import contextlib
import ctypes
import hashlib
import importlib.util
import os
import platform
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from miscompile.base.child import collect
from miscompile.targets.openvino.switch import compile_command, skip

SOURCE = Path(__file__).with_name("shim.cpp")
SWITCH = Path(__file__).with_name("switch.cpp")
COMPILE_SECONDS = 120.0
_COMPILERS = ("g++", "clang++", "c++")


class Observer:
    """The preloaded library's functions."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._reset = library.pass_observer_reset
        self._report = library.pass_observer_report
        self._reset.argtypes, self._reset.restype = [], None
        self._report.argtypes, self._report.restype = [], ctypes.c_char_p

    @staticmethod
    def find() -> "Observer | None":
        """Return the library that was preloaded into this process, None without one."""
        try:
            return Observer(ctypes.CDLL(None))
        except AttributeError:
            return None

    def begin(self, disabled: Iterable[str]) -> None:
        """Switch exactly the passes `disabled` off and reset all counts."""
        skip(sorted(disabled))
        self._reset()

    def report(self) -> list[tuple[str, str, int, int]]:
        """Return (kind, name, times tried, times fired) in the order of the first try; kind M is a matcher, P a
        pass."""
        rows = [line.split("\t") for line in self._report().decode().splitlines()]
        return [(kind, name, int(tried), int(fired)) for kind, name, tried, fired in rows]

    def fired(self) -> list[str]:
        """Return the names of the matchers that changed the graph, in the order of their first try."""
        return [name for kind, name, _, fired in self.report() if kind == "M" and fired]


def prepare() -> dict[str, str]:
    """Return the variables that preload the library; none when it cannot be compiled, with a line on standard error.

    Compiles it if the cache lacks it, which takes some two seconds.
    """
    try:
        library = built()
    except ObserverError as error:
        print(f"openvino: passes can be neither seen nor switched: {error}", file=sys.stderr)
        return {}
    before = [path for path in os.environ.get("LD_PRELOAD", "").replace(" ", ":").split(":") if path]
    return {"LD_PRELOAD": ":".join([str(library), *(path for path in before if path != str(library))])}


class ObserverError(Exception):
    """The library cannot be compiled; the message is the reason."""


def built() -> Path:
    """Return the path of the library, compiled if necessary. Raises ObserverError."""
    headers, library = _installed()
    command = compile_command(_compiler(), str(headers), library.name)
    words = [metadata.version("openvino"), platform.machine(), *command]
    key = hashlib.sha256("\x1f".join(words).encode() + SOURCE.read_bytes() + SWITCH.read_bytes()).hexdigest()[:16]
    target = cache_folder() / f"openvino-observer-{key}.so"
    if not target.exists():
        try:
            _compile([*command, str(SOURCE)], target)
        except OSError as error:
            raise ObserverError(f"{target.parent} cannot be written: {error}") from None
    return target


def cache_folder() -> Path:
    """Return the user's cache folder of this package."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "miscompile"


def _installed() -> tuple[Path, Path]:
    """Return the folder of the headers and the main library of the installed OpenVINO, which is not imported."""
    spec = importlib.util.find_spec("openvino")
    if spec is None or spec.origin is None:
        raise ObserverError("openvino is not installed")
    home = Path(spec.origin).parent
    headers = home / "include"
    libraries = sorted((home / "libs").glob("libopenvino.so.*"))
    if not (headers / "openvino" / "pass" / "matcher_pass.hpp").exists() or len(libraries) != 1:
        raise ObserverError(f"{home} has no headers, or not exactly one libs/libopenvino.so.*")
    return headers, libraries[0]


def _compiler() -> list[str]:
    """Return the command of a C++ compiler: $CXX, or the first of the usual ones."""
    named = shlex.split(os.environ.get("CXX", ""))
    found = next((path for name in (named[:1] or _COMPILERS) if (path := shutil.which(name))), None)
    if found is None:
        raise ObserverError(f"no C++ compiler was found ({', '.join(named[:1] or _COMPILERS)})")
    return [found, *named[1:]]


def _compile(command: list[str], target: Path) -> None:
    """Run `command` and move its output to `target` atomically, so that no process reads an incomplete library."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(".so", "making-", target.parent)
    os.close(handle)
    try:
        done = collect([*command, "-o", name, "-ldl"], seconds=COMPILE_SECONDS)
        if done.status is None:
            raise ObserverError(f"{command[0]} took more than {COMPILE_SECONDS:.0f} s")
        if done.status:
            raise ObserverError(f"{command[0]} failed: {' '.join(done.errors().split())[:300]}")
        os.replace(name, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
