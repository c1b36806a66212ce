"""Folders of Inductor's outputs: a permanent one for the precompiled header, temporary ones for the kernels of each
worker.

The header takes seconds to compile and is the same for all programs, so it is cached in the user's cache folder,
under the version of torch. Kernels are in a folder of the zygote with a folder for each worker, which is emptied
when it contains too many. The folder of a killed process is removed by the next process.
"""

import atexit
import contextlib
import functools
import hashlib
import importlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from miscompile.base.child import collect

_KERNELS = f"miscompile-inductor-{os.getuid()}"


def header_folder(version: str) -> str:
    """Return the folder of torch `version` for precompiled headers; a temporary one if the cache is not writable."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(base, "miscompile", "inductor", version)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.gettempdir(), f"{_KERNELS}-headers", version)
        folder.mkdir(parents=True, exist_ok=True)
    return str(folder)


def compiler_version() -> str:
    """Return the version text of the C++ compiler."""
    return collect([os.environ.get("CXX", "g++"), "--version"]).output()


def once(folder: str, what: str, action: Callable[[], object]) -> None:
    """Run `action` in a child process, unless a file in `folder` records that it has run for this compiler.

    It runs in a child because a process from which workers are forked must not compile. If it fails, the first
    worker fails too.
    """
    note = Path(folder, hashlib.sha256(f"{what} {compiler_version()}".encode()).hexdigest() + ".done")
    if note.exists():
        return
    child = os.fork()
    if not child:
        status = 1
        try:
            action()
            status = 0
        finally:
            os._exit(status)
    if not os.waitpid(child, 0)[1]:
        with contextlib.suppress(OSError):
            note.touch()


def keep_header(folder: str) -> None:
    """Make Inductor store its precompiled headers in `folder`, and look them up by the command line.

    Inductor's own lookup preprocesses the header in every process, which takes a second. `folder` is for one version
    of torch; the key consists of the command line and the compiler's version.
    """
    codecache: Any = importlib.import_module("torch._inductor.codecache")
    codecache._HEADER_DIR, codecache._HEADER_LOCK_DIR = folder, os.path.join(folder, "locks")
    original = codecache._precompile_header

    @functools.cache
    def precompile(header: str, command: str, version: str, words: tuple[tuple[str, Any], ...]) -> str:
        note = Path(folder, hashlib.sha256(f"{header} {command} {version}".encode()).hexdigest() + ".txt")
        with contextlib.suppress(OSError):
            path = note.read_text("utf-8")
            if Path(f"{path}.gch").exists():
                return path
        path = str(original(header, command, **dict(words)))
        with contextlib.suppress(OSError):
            note.write_text(path, "utf-8")
        return path

    def found(header: str, hashable_cmd_line: str, **words: Any) -> str:  # noqa: ANN401 - options of the build
        return precompile(header, hashable_cmd_line, compiler_version(), tuple(words.items()))

    codecache._precompile_header = found


class KernelFolders:
    """Folders of kernels below one that belongs to this process and its children."""

    def __init__(self, root: str | None = None) -> None:
        base = Path(root or tempfile.gettempdir(), _KERNELS)
        base.mkdir(mode=0o700, exist_ok=True)
        _sweep(base)
        self._owner = os.getpid()
        self._folder = base / str(self._owner)
        self._mine: Path | None = None
        atexit.register(self.remove)

    def remove(self) -> None:
        """Remove everything, if this is the process that created it."""
        if os.getpid() == self._owner:
            shutil.rmtree(self._folder, ignore_errors=True)

    def enter(self, *, anew: bool) -> str:
        """Return this process's folder, emptied if `anew`."""
        if self._mine is None or self._mine.name != str(os.getpid()):
            self._mine = self._folder / str(os.getpid())
            self._folder.mkdir(mode=0o700, exist_ok=True)
            _sweep(self._folder)
            anew = True
        if anew:
            shutil.rmtree(self._mine, ignore_errors=True)
            self._mine.mkdir(exist_ok=True)
        return str(self._mine)


def _sweep(base: Path) -> None:
    """Remove the folders of processes that have ended."""
    with contextlib.suppress(OSError):
        for folder in base.iterdir():
            if folder.name.isdigit() and not Path("/proc", folder.name).exists():
                shutil.rmtree(folder, ignore_errors=True)
