"""Where Inductor keeps what it makes: the precompiled header for good, kernels as long as their worker lives.

The header takes seconds to compile and is the same for all programs, so it is kept in the user's cache folder, under
the version of torch. Kernels lie in a folder of the zygote's with one folder for each worker, which starts anew when
it holds too many. What a killed process left behind is removed by the next one.
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
    """Return the folder of torch `version` for precompiled headers; a temporary one where no other can be written."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(base, "miscompile", "inductor", version)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.gettempdir(), f"{_KERNELS}-headers", version)
        folder.mkdir(parents=True, exist_ok=True)
    return str(folder)


def compiler_version() -> str:
    """Return what the C++ compiler says of its version."""
    return collect([os.environ.get("CXX", "g++"), "--version"]).output()


def once(folder: str, what: str, action: Callable[[], object]) -> None:
    """Do `action` in a child process if it has not been done yet for this compiler, as a note in `folder` tells.

    A child, because a process that workers fork from must not compile; when it fails, so will the first worker.
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
    """Have Inductor keep its precompiled headers in `folder`, and find them there again by the command line alone.

    Inductor's own search preprocesses the header in every process, which takes a second. `folder` is that of one
    version of torch; the command line names everything else but the compiler's version, which is asked for.
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
        """Remove everything, if this is the process that began it."""
        if os.getpid() == self._owner:
            shutil.rmtree(self._folder, ignore_errors=True)

    def enter(self, *, anew: bool) -> str:
        """Return this process's folder, emptied if it begins `anew`."""
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
    """Remove folders that are named after processes which are no more."""
    with contextlib.suppress(OSError):
        for folder in base.iterdir():
            if folder.name.isdigit() and not Path("/proc", folder.name).exists():
                shutil.rmtree(folder, ignore_errors=True)
