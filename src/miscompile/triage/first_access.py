"""Names the first bad access of a script that dies of a corrupted heap, or of a fault outside of guarded memory.

A corrupted heap kills the process at some later call of the allocator, so the death says nothing about the cause. The
script runs once more under a checker: valgrind's memcheck where it is installed, which sees each access, else (and
where memcheck sees none, because it hides wide vectors from the program) glibc's checking allocator, which only finds a
damaged block when it is freed. Neither is needed: without an answer the report just lacks the line.
"""

import ctypes
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path
from signal import SIGBUS, SIGSEGV
from tempfile import TemporaryDirectory
from typing import Any

from miscompile.base.child import collect
from miscompile.core.outcome import Crashed, Outcome
from miscompile.oracles.memory import heap_words
from miscompile.targets.guards import SAYS

SECONDS, CHECKED_SECONDS = 300.0, 60.0
"""The time limits of a run under valgrind, which takes some fifty times as long, and of one under glibc's checks."""

MEMCHECK, GLIBC = "valgrind memcheck", "glibc's checking allocator"
"""The checkers, as reports name them."""

_OPTIONS = ("--undef-value-errors=no", "--show-mismatched-frees=no", "--error-limit=no", "--num-callers=24")
"""Options of valgrind: only accesses and frees count, however many come first."""

_CHECKS = {"LD_PRELOAD": "libc_malloc_debug.so.0", "MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "165"}
"""Variables that make glibc check each block that is freed, and fill fresh and freed memory."""

TRACE = "trace of the death:"
"""What the child prints before its signal and the native frames."""

_CHILD = Path(__file__).with_name("first_access_child.py")
_FRAMES = 4

_ACCESS = re.compile(r"Invalid (?P<verb>read|write) of size (?P<size>\d+)$")
_FREED = re.compile(r"(?P<what>Invalid free|Jump to the invalid address)")
_FRAME = re.compile(r"(?:at|by) 0x[0-9A-F]+: (?P<name>.+) \((?:in (?P<library>[^()]+)|[^()]+)\)$")
_BLOCK = re.compile(r"Address 0x[0-9a-f]+ is (?P<where>.+)$")
_TRACED = re.compile(r"^(?P<library>/?[^\s()]+)\((?P<name>[^()+]*)\+(?P<offset>0x[0-9a-f]+)\)", re.MULTILINE)
_OUTSIDE = re.compile(r"/(?:libc|ld-linux|libc_malloc_debug|libffi|_ctypes|libpython|libstdc\+\+|python[\d.]*$)[^/]*$")
_GLUE = re.compile(r"std::|_?Py[A-Z_]|ffi_|_call_function_pointer|method_vectorcall|cfunction_")
"""Libraries and functions of C, C++ and Python, whose frames say nothing about a compiler."""

_LOADER = "_dl_"
"""Functions of the dynamic loader, whose reads of strings go beyond their end by design."""


@dataclass(frozen=True, slots=True)
class BadAccess:
    """The first bad access: what a `checker` says it is and where it is, and the innermost `frames` of the compiler."""

    checker: str
    what: str
    where: str
    frames: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the fields for a finding's facts."""
        return asdict(self)


def wanted(outcome: Outcome | None) -> bool:
    """Tell whether a death leaves open which access is to blame: a corrupted heap, a fault that no guard page names."""
    if not isinstance(outcome, Crashed):
        return False
    text = outcome.observations.stderr
    named = any(line.startswith(SAYS) and "'" in line for line in text.splitlines())
    return not named and (bool(heap_words(text)) or outcome.signal in (SIGSEGV, SIGBUS))


def first_bad_access(
    path: Path, outcome: Outcome | None, python: str | Path | None = None, seconds: float = SECONDS
) -> BadAccess | None:
    """Run the script at `path`, which dies as in `outcome`, under the checkers; return what the first one finds.

    `python` is the interpreter that has the compiler; None stands for this one.
    """
    corrupted = isinstance(outcome, Crashed) and bool(heap_words(outcome.observations.stderr))
    command = [str(python or sys.executable), "-I"]
    found = None
    if shutil.which("valgrind"):
        found = _under_memcheck([*command, str(path)], seconds, corrupted)
    return found or _under_glibc([*command, str(_CHILD), str(path)])


def _under_memcheck(command: list[str], seconds: float, corrupted: bool) -> BadAccess | None:
    with TemporaryDirectory(prefix="miscompile-") as place:
        log = Path(place) / "valgrind"
        collect(["valgrind", *_OPTIONS, f"--log-file={log}", *command], seconds=seconds)
        said = log.read_text("utf-8", "replace") if log.exists() else ""
    return memcheck_access(said, corrupted)


def memcheck_access(said: str, corrupted: bool) -> BadAccess | None:
    """Return the first bad access in the log of memcheck, a write or a free if there is one, since reads harm nothing.

    Where the heap is `corrupted`, reads do not count at all. Accesses of the dynamic loader never count.
    """
    reads = []
    for error in _errors(said):
        frames = _stack(error)
        if any(frame["name"].startswith(_LOADER) for frame in frames):
            continue
        access, freed = _ACCESS.match(error[0]), _FREED.match(error[0])
        if not access and not freed:
            continue
        what = f"{access['verb']}s {access['size']} bytes" if access else error[0].lower()
        where = next((match["where"] for line in error if (match := _BLOCK.match(line))), "")
        where = where.removesuffix(" alloc'd").replace(" free'd", " that has been freed")
        found = BadAccess(MEMCHECK, what, where, _named(frames))
        if freed or (access and access["verb"] == "write"):
            return found
        reads.append(found)
    return reads[0] if reads and not corrupted else None


def _errors(said: str) -> Iterator[list[str]]:
    """Yield the lines of each error in a log of valgrind, without the number of the process."""
    error: list[str] = []
    for line in said.splitlines():
        text = re.sub(r"^==\d+== ?", "", line).strip()
        if text:
            error.append(text)
        elif error:
            yield error
            error = []
    if error:
        yield error


def _stack(error: Sequence[str]) -> "list[re.Match[str]]":
    """Return the frames of an access; those of the call that made its block stand behind the address."""
    accessing = takewhile(lambda line: not _BLOCK.match(line), error)
    return [match for line in accessing if (match := _FRAME.match(line))]


def _named(frames: "Sequence[re.Match[str]]") -> tuple[str, ...]:
    """Return the innermost frames as `function (library)`, without those of the standard library and of Python."""
    names = []
    for frame in frames:
        name, library = without_arguments(frame["name"]), frame["library"] or ""
        if _GLUE.match(name) or _OUTSIDE.search(library):
            continue
        names.append(f"{name} ({os.path.basename(library)})" if library else name)
    return tuple(names[:_FRAMES])


def without_arguments(name: str) -> str:
    """Return a C++ function's name without its argument types."""
    depth = 0
    for place, letter in enumerate(name):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth == 0 and place and not name.startswith("(anonymous", place):
            return name[:place]
    return name


def _under_glibc(command: list[str]) -> BadAccess | None:
    done = collect(command, seconds=CHECKED_SECONDS, environment={**os.environ, **_CHECKS})
    return None if done.status is None or done.status >= 0 else glibc_access(done.errors())


def glibc_access(said: str) -> BadAccess | None:
    """Return the death that glibc's checks cause, from the standard error of a process that traces its end."""
    printed, _, traced = said.partition(TRACE)
    signal, _, trace = traced.partition("\n")
    words = heap_words(printed)
    if not words and not signal:
        return None
    frames = [_spelt(match) for match in _TRACED.finditer(trace) if not _OUTSIDE.search(match["library"])]
    where = "seen by a later call of the allocator, so that the write came before" if words else ""
    return BadAccess(GLIBC, words or signal.strip(), where, tuple(frames[:_FRAMES]))


def _spelt(frame: "re.Match[str]") -> str:
    name = without_arguments(_demangled(frame["name"])) or f"+{frame['offset']}"
    return f"{name} ({os.path.basename(frame['library'])})"


@cache
def _demangler() -> Any:  # noqa: ANN401 - a function of a C library, or None
    try:
        function = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_char_p
    return function


def _demangled(name: str) -> str:
    """Return the name of a C++ function as its source has it; the 30 bytes of each result are not freed."""
    function = _demangler() if name.startswith("_Z") else None
    found = function(name.encode(), None, None, None) if function else None
    return found.decode("utf-8", "replace") if found else name
