"""Harvest of the pairs (pass, module) in TVM's own tests, with one child process for each test file.

OATest collects its patterns from documented tests by running them under a hook (section 3.1). `hooks/tvm.py` is the
hook; `hooks/tvm_fragments.py` extracts patterns from its records. The records of a file before a crash, timeout or
failure are kept.
"""

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from miscompile.base.child import attend, start
from miscompile.base.errors import SpecError, UsageError
from miscompile.core.events import ProgressListener
from miscompile.harvest.processes import need
from miscompile.targets.tvm.relax.transforms import ENDING, read_entry

End = Literal["passed", "failed", "crashed", "timed out"]

FIRST = ("test_transform", "test_dataflow", "test_optimize", "test_remove", "test_fuse", "test_eliminate", "test_kill",
         "test_lower", "test_inline", "test_bind", "test_fast", "test_group", "test_backend")  # fmt: skip
"""The prefixes of the names of files that test passes; they run before all others, in this order."""

_HOOK = "miscompile.harvest.patterns.hooks.tvm"
_PASSED, _NO_TESTS = 0, 5
"""Exit codes of pytest: all tests passed, and there was no test."""


@dataclass(frozen=True, slots=True)
class TvmTestHarvest:
    """The results of a checkout's tests. All counts are of the records in the folder, those of earlier runs
    included.

    `files` counts test files by outcome, `pairs` distinct pairs of pass and module, `changed` the pairs in which the
    pass changed the module; `by_pass` contains the latter two for each pass. `left` counts modules that could not be
    recorded, by reason. `stopped`: the user interrupted it, so files are missing.
    """

    files: Mapping[str, int]
    modules: int
    pairs: int
    changed: int
    by_pass: Mapping[str, tuple[int, int]]
    left: Mapping[str, int]
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class Yield:
    """The results of an extraction: patterns in the library, by granularity and by pass and granularity.

    `left` counts rejected pieces and rejected patterns by reason; `files` counts the files of pairs by the outcome
    of their extraction. `stopped`: the user interrupted it.
    """

    files: Mapping[str, int]
    patterns: Mapping[str, int]
    by_pass: Mapping[tuple[str, str], int]
    left: Mapping[str, int]
    stopped: bool = False


def harvest_tvm(
    path: Path,
    out: Path,
    on_progress: ProgressListener = print,
    seconds: float = 240.0,
    python: str = sys.executable,
) -> TvmTestHarvest:
    """Run the test files in `path`/tests/python/relax, in a checkout of TVM, under the hook; return the results.

    The hook writes `pairs/FILE.jsonl` in `out` for each file. This function adds a line to `ended.jsonl` when the
    file has ended. Files with such a line do not run again, so that an interrupted harvest can continue. An
    interruption ends the tests, and their records until then count. `python` is an interpreter with this package,
    TVM and pytest. Raises SpecError when `path` has no such tests, and UsageError when a package is missing or `out`
    is not a folder.
    """
    files = files_of_tests(path)
    if not files:
        raise SpecError(f"{path} has no tests/python/relax/test_*.py: it is no checkout of TVM")
    if python == sys.executable:
        need({"tvm": "apache-tvm", "pytest": "pytest"}, "harvest tvm")
    _make(out / "pairs")
    _make(out / "library")  # checked now, because patterns are written hours later
    try:
        _run_files(files, out, on_progress, seconds, python)
    except KeyboardInterrupt:
        return replace(gathered(out), stopped=True)
    return gathered(out)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".probe").write_text("")
        (folder / ".probe").unlink()
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror or error}; choose another folder") from None


def _run_files(files: Sequence[Path], out: Path, on_progress: ProgressListener, seconds: float, python: str) -> None:
    """Run the files that have not ended yet. Raises UsageError when the tests of a file did not start."""
    ended = out / "ended.jsonl"
    done = {line["file"] for line in _lines(ended)}
    for place, file in enumerate(files, 1):
        pairs = out / "pairs" / f"{file.stem}.jsonl"
        if file.name in done and any(True for _ in _lines(pairs)):
            continue
        begun = time.monotonic()
        end = run_file(file, pairs, seconds, python)
        took = round(time.monotonic() - begun, 1)
        if not any(True for _ in _lines(pairs)):
            pairs.unlink(missing_ok=True)
            raise UsageError(f"no test of {file.name} began: '{python} -m {_HOOK} {file} FILE' says why")
        with ended.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"file": file.name, "end": end, "seconds": took}) + "\n")
        on_progress(f"[{place}/{len(files)}] {file.name}: {end} in {took:g} s")


def extract_tvm(
    harvest: Path,
    library: Path,
    on_progress: ProgressListener = print,
    seconds: float = 900.0,
    python: str = sys.executable,
) -> Yield:
    """Extract the patterns of a harvest into the folder `library`; return the results.

    Each file of pairs has a child process, which is restarted when a pattern crashes it, with a timeout of `seconds`
    in all. Files that are done are skipped, unless they have grown. An interruption ends the extraction, and the
    results until then are returned. Raises SpecError when `harvest` contains no pairs.
    """
    files = sorted((harvest / "pairs").glob("*.jsonl"))
    if not files:
        raise SpecError(f"{harvest} is no harvest: it has no pairs/*.jsonl")
    _make(library)
    log = library / "vetted.jsonl"
    done = {line["done"]: line.get("bytes") for line in _lines(log) if "done" in line}
    ends: Counter[str] = Counter()
    try:
        for place, file in enumerate(files, 1):
            if file.stem in done and done[file.stem] in (None, file.stat().st_size):
                continue
            begun = time.monotonic()
            end = _extract(file, library, seconds, python)
            if end == "timed out":
                _forgive(log)  # the timeout of the whole file; most likely no pattern caused it
            ends[end] += 1
            on_progress(f"[{place}/{len(files)}] {file.stem}: {end} in {time.monotonic() - begun:.1f} s")
    except KeyboardInterrupt:
        _forgive(log)
        return replace(_yielded(library, ends), stopped=True)
    return _yielded(library, ends)


def _extract(file: Path, library: Path, seconds: float, python: str) -> str:
    """Extract the patterns of one file of pairs into the library; return the outcome."""
    log, begun = library / "vetted.jsonl", time.monotonic()
    end = "crashed"
    while end == "crashed" and time.monotonic() - begun < seconds:
        known = sum(1 for _ in _lines(log))
        command = ["miscompile.harvest.patterns.hooks.tvm_fragments", str(file.absolute()), str(library.absolute())]
        end = _child([python, "-m", *command], library, seconds - (time.monotonic() - begun))
        if end == "crashed" and sum(1 for _ in _lines(log)) == known:
            break  # no pattern caused it, so a restart would fail again
    return end


def _forgive(log: Path) -> None:
    """Record that the pattern under construction at the interruption has not crashed the process."""
    last = None
    for line in _lines(log):
        last = line.get("begun")
    if last is not None:
        with log.open("a", encoding="utf-8") as stream:
            stream.write("\n" + json.dumps({"stopped": last}) + "\n")


def _yielded(library: Path, ends: Mapping[str, int]) -> Yield:
    """Count the patterns in a library, and the rejected pieces by reason."""
    patterns: Counter[str] = Counter()
    by_pass: Counter[tuple[str, str]] = Counter()
    damaged = 0
    for file in sorted(library.glob(f"*{ENDING}")):
        try:
            entry = read_entry(file)
        except ValueError:
            damaged += 1
            continue
        patterns[entry["granularity"]] += 1
        by_pass.update((name, entry["granularity"]) for name in entry["passes"])
    left: Counter[str] = Counter({"a damaged file": damaged} if damaged else {})
    begun: set[str] = set()
    for line in _lines(library / "vetted.jsonl"):
        begun ^= {line[key] for key in ("begun", "ended", "stopped") if key in line}
        why = line.get("refused") or line.get("why")
        if why:
            left[why.split(":")[0]] += 1
    if begun:
        left["kills the compiler"] = len(begun)
    return Yield(dict(ends), dict(patterns), dict(by_pass), dict(left))


def files_of_tests(path: Path) -> list[Path]:
    """Return the test files of Relax in a checkout of TVM, those of its passes first."""
    found = sorted((path / "tests" / "python" / "relax").glob("test_*.py"))
    return sorted(
        found, key=lambda file: next((i for i, word in enumerate(FIRST) if file.name.startswith(word)), len(FIRST))
    )


def run_file(file: Path, out: Path, seconds: float, python: str = sys.executable) -> End:
    """Run one test file under the hook in a child process for at most `seconds`; the hook writes to `out`.

    The child and all processes that it started are killed at the timeout.
    """
    command = [python, "-m", _HOOK, str(file.absolute()), str(out.absolute())]
    if _child(command, out.parent, seconds) == "timed out":
        return "timed out"
    codes = [line["exit"] for line in _lines(out) if "exit" in line]
    if not codes:
        return "crashed"
    return "passed" if codes[-1] in (_PASSED, _NO_TESTS) else "failed"


def _child(command: list[str], folder: Path, seconds: float) -> Literal["ended", "crashed", "timed out"]:
    """Run a child in `folder` for at most `seconds`; kill all processes that it started."""
    environment = {**os.environ, "TVM_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    status = attend(start(command, folder=folder, environment=environment), max(seconds, 1.0))
    return "timed out" if status is None else "crashed" if status else "ended"


def gathered(out: Path) -> TvmTestHarvest:
    """Count the records in a folder of `harvest_tvm`."""
    files = Counter({line["file"]: line["end"] for line in _lines(out / "ended.jsonl")}.values())
    modules: set[str] = set()
    pairs: dict[tuple[str, str], bool] = {}
    left: Counter[str] = Counter()
    for line in harvested(out):
        if "script" in line:
            modules.add(line["module"])
        elif "left" in line:
            left[line["left"]] += 1
        elif "pass" in line:
            key = line["pass"], line["module"]
            pairs[key] = pairs.get(key, False) or line["changed"]
    names = sorted({name for name, _ in pairs})
    by_pass = {
        name: (
            sum(one == name for one, _ in pairs),
            sum(changed for (one, _), changed in pairs.items() if one == name),
        )
        for name in names
    }
    return TvmTestHarvest(dict(files), len(modules), len(pairs), sum(pairs.values()), by_pass, dict(left))


def harvested(out: Path) -> Iterator[dict[str, Any]]:
    """Yield every record of the hooks in the folder `out`, with the name of the test file as `file`."""
    for file in sorted((out / "pairs").glob("*.jsonl")):
        for line in _lines(file):
            yield {**line, "file": f"{file.stem}.py"}


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a file of JSON lines; a line truncated by a crash is skipped."""
    if not file.exists():
        return
    for text in file.read_text("utf-8").splitlines():
        try:
            yield json.loads(text)
        except json.JSONDecodeError:
            continue
