"""Running test suites under a hook: a child process for each file, with a time limit.

A compiler's tests import the compiler, and may crash it, hang, or leave threads running. Each file therefore runs in
a process of its own, and the records of the hook before a crash are kept.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from miscompile.base.child import attend, start
from miscompile.base.digest import digest_bytes
from miscompile.base.errors import UsageError
from miscompile.core.events import ProgressListener
from miscompile.harvest.patterns.pairs import Gathered, read_record
from miscompile.harvest.processes import ENVIRONMENT, LOG, home_of, last_line, need

_WHY = {"died": "died", "empty": "ran no test"}

_ENVIRONMENT = {
    **ENVIRONMENT,
    "TORCHINDUCTOR_FX_GRAPH_CACHE": "0",  # on a cache hit no pass runs
    "TORCHINDUCTOR_AUTOGRAD_CACHE": "0",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
}


@dataclass(frozen=True, slots=True)
class SuiteKind:
    """A kind of test suite: the hook that records it, and the packages that the hook needs.

    `packages` maps the name to import to the name to install.
    """

    name: str
    hook: str
    packages: tuple[tuple[str, str], ...]


_HOOKS = "miscompile.harvest.patterns.hooks"

SUITES = {
    suite.name: suite
    for suite in (
        SuiteKind("onnxruntime", f"{_HOOKS}.onnxruntime", (("onnxruntime", "onnxruntime"),)),
        SuiteKind("onnxscript", f"{_HOOKS}.onnxscript", (("onnxscript", "onnxscript"),)),
        SuiteKind("inductor", f"{_HOOKS}.torch", (("torch", "torch"), ("onnxscript", "onnxscript"))),
    )
}


def check_packages(suite: SuiteKind) -> None:
    """Raise UsageError, which names the package to install, when a package that the hook needs is missing."""
    need(dict(suite.packages), f"harvest {suite.name}")


def files_of(path: Path) -> list[Path]:
    """Return the test files at `path`: itself, or `test_*.py` and `*_test.py` below it, in order.

    Raises UsageError when there is no test file.
    """
    if path.is_file():
        if path.suffix != ".py":
            raise UsageError(f"{path} is no Python file; give a test file or a folder of them")
        return [path]
    if not path.is_dir():
        raise UsageError(f"there is no {path}")
    found = {one for pattern in ("test_*.py", "*_test.py") for one in path.rglob(pattern) if one.is_file()}
    if not found:
        raise UsageError(f"there is no test_*.py or *_test.py in {path}")
    return sorted(found)


def run_suite(
    suite: SuiteKind, files: Sequence[Path], folder: Path, seconds: float, on_progress: ProgressListener
) -> Gathered:
    """Run `files` one after the other, each for at most `seconds`; the hook writes models to `folder`.

    An interruption (Ctrl-C) ends the current file, and the results until then are returned with `stopped`.
    """
    gathered = Gathered()
    for number, path in enumerate(files, 1):
        on_progress(f"[{number}/{len(files)}] {path.name}")
        out = folder.resolve() / f"{number:04d}-{digest_bytes(str(path).encode())[:8]}"
        out.mkdir(parents=True)
        try:
            ending = _run(suite, path.resolve(), out, seconds)
        except KeyboardInterrupt:
            gathered.stopped = True
            ending = "stopped"
        record = read_record(out)
        gathered.add(record)
        if ending == "ended" and not record.ended:
            ending = "died"
        elif ending == "ended":
            ending = "ran" if record.tests else "empty"
        gathered.sources[ending] += 1
        if ending == "time":
            gathered.notes.append(f"{path.name} ran out of {seconds:g} s")
        elif ending in ("died", "empty"):
            gathered.notes.append(f"{path.name} {_WHY[ending]}: {last_line(out / LOG)}")
        on_progress(f"    {sum(record.tests.values())} tests, {len(record.pairs)} pairs")
        if gathered.stopped:
            break
    return gathered


def _run(suite: SuiteKind, path: Path, out: Path, seconds: float) -> str:
    """Run one file; return `ended` or `time`. The child and all processes that it started are killed afterwards."""
    command = [sys.executable, "-m", suite.hook, str(path), str(out)]
    with (out / LOG).open("wb") as log:
        child = start(command, stdout=log, stderr=log, folder=home_of(path), environment={**os.environ, **_ENVIRONMENT})
    return "time" if attend(child, seconds) is None else "ended"
