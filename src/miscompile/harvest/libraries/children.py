"""Child processes that harvest instances: start, output, end, and reading of their results.

Tests of a library crash, hang and change their process, so each file runs in its own process under the hooks of
`harvest.libraries.hooks`; results before a crash are kept.
"""

import contextlib
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from miscompile.base.child import attend, start
from miscompile.base.digest import digest_bytes
from miscompile.core.events import ProgressListener
from miscompile.harvest.libraries.hooks.recording import LIMIT, LINES
from miscompile.harvest.processes import ENVIRONMENT, LOG, home_of, last_line
from miscompile.instances.archive import Archive, distinct
from miscompile.instances.code import from_json
from miscompile.instances.instance import Instance, Library

_POLL = 0.2
"""Seconds between two reads of a child's output."""

_ENVIRONMENT: Mapping[str, str] = {**ENVIRONMENT, "PYTHONHASHSEED": "0"}
"""PYTHONHASHSEED is fixed because the tests iterate over sets of element types."""


@dataclass(slots=True)
class Harvested:
    """The results of children.

    `tests` counts tests, or entries of a database, by outcome; `left` counts uses of operators that could not be
    recorded, by reason; `files` counts children by outcome: they `ran` to their end, had no test (`empty`), crashed
    (`died`), exceeded the timeout (`time`), or were `stopped`. `notes` describes the failures. `stopped`: the user
    interrupted it.
    """

    instances: list[Instance] = field(default_factory=list)
    tests: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    files: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    stopped: bool = False

    def figures(self) -> dict[str, Any]:
        """Return the counts for the archive."""
        return {
            "instances": len(self.instances),
            "operators": len({one.api for one in self.instances}),
            "tests": dict(self.tests),
            "files": dict(self.files),
            "left": dict(self.left.most_common()),
            "notes": list(self.notes),
            "stopped": self.stopped,
        }

    def archive(self, library: Library, distributions: Sequence[str]) -> Archive:
        """Return an archive of the distinct instances, with the installed versions of `distributions`."""
        self.instances = list(distinct(self.instances))
        return Archive(library, tuple(self.instances), _versions(distributions), self.figures())


@dataclass(frozen=True, slots=True)
class Child:
    """A module of `harvest.libraries.hooks` to run as a process: `python -m module *words`, in the folder `home`.

    It writes into `out`, which also gets its output; `above` comes first in its import path. `seconds` is its timeout.
    """

    module: str
    words: tuple[str, ...]
    out: Path
    seconds: float
    home: Path | None = None
    above: Path | None = None


def run_child(child: Child, harvested: Harvested, name: str, on_line: Callable[[str], None] | None = None) -> None:
    """Run a child to its end or its timeout, and add its results to `harvested`; notes contain `name`.

    `on_line` receives each line of the output immediately. An interruption (Ctrl-C) ends the child, and sets `stopped`.
    """
    child.out.mkdir(parents=True, exist_ok=True)
    try:
        ending = _run(child, on_line or _ignore)
    except KeyboardInterrupt:
        harvested.stopped = True
        ending = "stopped"
    tests, ended = _read(child.out, harvested)
    if ending == "ended":
        ending = "died" if not ended else "ran" if tests else "empty"
    harvested.files[ending] += 1
    if ending == "time":
        harvested.notes.append(f"{name} ran out of {child.seconds:g} s")
    elif ending in ("died", "empty"):
        why = "ran no test" if ending == "empty" else ending
        harvested.notes.append(f"{name} {why}: {last_line(child.out / LOG)}")


def run_on(
    module: str,
    words: Callable[[Path, int], tuple[str, ...]],
    seconds: float,
    harvested: Harvested,
    on_begin: Callable[[int], None],
    *,
    most: int,
    name: str = "",
) -> Iterator[Path]:
    """Run children of `module` one after the other, each from the task after the one at which the last died.

    A caller that knows which part of a task ended the child may let `words` name the same task again without it.

    A child prints `{"begin": NUMBER, ...}` before each task. `words` returns its arguments for its folder and its first
    task, `on_begin` receives the number of begun tasks. At most `most` children run. Yields the folder of each child
    after its end, which exists until the next step; notes contain `name`, formatted with the first task.
    """
    first, begun = 0, False

    def on_line(line: str) -> None:
        nonlocal first, begun
        if line.startswith('{"begin"'):
            first, begun = int(json.loads(line)["begin"]) + 1, True
            on_begin(first)

    with tempfile.TemporaryDirectory(prefix="miscompile-") as folder:
        for number in range(most):
            out, at, begun = Path(folder) / f"{first:05d}", first, False
            if out.exists():  # the same task again
                out = out.with_name(f"{first:05d}-{number}")
            lost = harvested.files["died"] + harvested.files["time"]
            run_child(Child(module, words(out, first), out, seconds), harvested, name.format(at), on_line)
            yield out
            if harvested.stopped or not begun or harvested.files["died"] + harvested.files["time"] == lost:
                return


def run_files(
    library: Library,
    files: Sequence[Path],
    folder: Path,
    seconds: float,
    on_progress: ProgressListener,
    limit: int = LIMIT,
) -> Harvested:
    """Run test files under the hooks of `library`, each in a process and for at most `seconds`.

    At most `limit` instances of an operator are kept of a file. An interruption ends the current file, and the results
    so far are returned with `stopped`.
    """
    harvested = Harvested()
    for number, path in enumerate(files, 1):
        on_progress(f"[{number}/{len(files)}] {path.name}")
        path = path.resolve()
        out = folder.resolve() / f"{number:04d}-{digest_bytes(str(path).encode())[:8]}"
        words = (library, str(path), str(out), str(limit))
        module = "miscompile.harvest.libraries.hooks.record_tests"
        before = sum(harvested.tests.values()), len(harvested.instances)
        run_child(Child(module, words, out, seconds, home_of(path), _above_package(path)), harvested, path.name)
        on_progress(
            f"    {sum(harvested.tests.values()) - before[0]} tests, {len(harvested.instances) - before[1]} instances"
        )
        if harvested.stopped:
            break
    return harvested


def _above_package(path: Path) -> Path:
    """Return the nearest folder above `path` that is no part of a package."""
    folder = path.parent
    while (folder / "__init__.py").exists():
        folder = folder.parent
    return folder


def _run(child: Child, on_line: Callable[[str], None]) -> str:
    """Return `ended` or `time`. The child and all processes that it started are killed afterwards."""
    paths = [str(child.above)] if child.above else []
    paths += [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
    environment = {**os.environ, **_ENVIRONMENT, **({"PYTHONPATH": os.pathsep.join(paths)} if paths else {})}
    log = child.out / LOG
    with log.open("wb") as output, log.open("rb") as heard:
        words = [sys.executable, "-m", child.module, *child.words]
        process = start(words, stdout=output, stderr=output, folder=child.home, environment=environment)
        lines = _LineReader(heard)

        def listen() -> None:
            for line in lines.fresh():
                on_line(line)

        try:
            status = attend(process, child.seconds, _POLL, listen)
        finally:
            listen()
    return "time" if status is None else "ended"


class _LineReader:
    """Reads the complete lines added to a file since the last read."""

    def __init__(self, file: Any) -> None:  # noqa: ANN401 - a binary file
        self._file, self._rest = file, b""

    def fresh(self) -> Iterator[str]:
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace")


def _ignore(line: str) -> None:
    """Ignore a line."""
    del line


def _read(out: Path, harvested: Harvested) -> tuple[int, bool]:
    """Add a child's results; return its number of tests, and whether it ran to its end.

    The last line of a killed child may be incomplete.
    """
    path, tests, ended = out / LINES, 0, False
    for line in path.read_bytes().split(b"\n")[:-1] if path.exists() else ():
        said = json.loads(line)
        if "instance" in said:
            harvested.instances.append(from_json(said["instance"]))
        elif "ran" in said:
            harvested.tests[said["outcome"]] += 1
            tests += 1
        elif "left" in said:
            harvested.left.update(said["left"])
        ended = ended or "exit" in said
    return tests, ended


def _versions(distributions: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in distributions:
        with contextlib.suppress(metadata.PackageNotFoundError):  # an optional distribution that is not installed
            found[name] = metadata.version(name)
    return found
