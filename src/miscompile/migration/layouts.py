"""Suites in the form of a compiler's own tests: a pytest module for each test, or lit tests.

    FOLDER/test_0001_Conv.py          `pytest`: one function, which uses the compiler's interface and nothing else
    FOLDER/test_0001_Conv.mlir        `lit`: as `About.upstream` of the compiler writes it
    FOLDER/lit.cfg.py                 finds the tools of the compiler on the PATH

The tests need nothing of this tool.
"""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from miscompile.base.dtypes import PLAIN
from miscompile.base.errors import MiscompileError, UsageError
from miscompile.core.case import Feed
from miscompile.core.outcome import Rejected, Unsupported
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool
from miscompile.migration.suite import SuiteEntry, SuiteReport, checked, ranked_name, tolerances
from miscompile.targets.registry import parse_target
from miscompile.targets.upstream import UpstreamStory
from miscompile.triage.script import write_script
from miscompile.triage.skeleton import TEST_TEMPLATE
from miscompile.triage.upstream import LONGEST, upstream_files

LAYOUTS = ("onnx", "pytest", "lit")
_BATCH = 16
_COMPARED = frozenset({*PLAIN, "bfloat16"})
_LIT = """\
import os

import lit.formats

config.name = "miscompile"
config.test_format = lit.formats.ShTest(False)
config.suffixes = ["{suffix}"]
config.test_exec_root = os.path.join(os.path.dirname(__file__), "Output")
config.environment["PATH"] = os.environ["PATH"]
"""


def export_pytest(entries: Iterator[SuiteEntry], folder: Path, target: str, most: int | None = None) -> SuiteReport:
    """Write a pytest module for each entry into `folder`, which must be new or empty.

    Each compares one output of the optimised build with the expected one. Entries whose program the target has no
    lowering for are left out. `most` limits the number of tests that are written.
    """
    report = SuiteReport()
    _begin(folder)
    for entry, expected in _taken(entries, target, report):
        if any(value.dtype not in _COMPARED for value in expected):
            report.left_out["results of a type that numpy does not compare"] += 1
            continue
        try:
            texts = [_module(entry, target, expected, place) for place in range(len(expected))]
        except MiscompileError as error:
            report.left_out[_reason(error)] += 1
            continue
        if max(map(len, texts), default=0) > LONGEST:
            report.left_out["its tensors are too large for a module"] += 1
            continue
        name = ranked_name(len(report.written) + 1, entry.name)
        for place, text in enumerate(texts):
            suffix = f"_output_{place}" if len(texts) > 1 else ""
            (folder / f"{name}{suffix}.py").write_text(text, "utf-8")
        report.written.append(name)
        if len(report.written) == most:
            break
    return report


def export_lit(entries: Iterator[SuiteEntry], folder: Path, target: str, most: int | None = None) -> SuiteReport:
    """Write a lit test for each entry into `folder`, which must be new or empty.

    `most` limits the number of tests that are written. Raises UsageError for a compiler whose own tests are not of that
    form.
    """
    about = parse_target(target).about
    if not about.upstream:
        raise UsageError(f"the tests of {target} are no lit tests; choose another --layout")
    report = SuiteReport()
    _begin(folder)
    checked_entries = _taken(entries, target, report)
    while batch := list(islice(checked_entries, _batch(report, most))):
        stories = [_story(entry, expected) for entry, expected in batch]
        for (entry, _), files in zip(batch, upstream_files(about.upstream, stories), strict=True):
            test = next((name for name in files if name.startswith("upstream_test.")), None)
            if test is None:
                report.left_out["the compiler's importer, or its tools, do not take it"] += 1
                continue
            name, suffix = ranked_name(len(report.written) + 1, entry.name), Path(test).suffix
            (folder / f"{name}{suffix}").write_text(files[test], "utf-8")
            (folder / "lit.cfg.py").write_text(_LIT.format(suffix=suffix), "utf-8")
            report.written.append(name)
    return report


def _batch(report: SuiteReport, most: int | None) -> int:
    return _BATCH if most is None else min(_BATCH, most - len(report.written))


def _begin(folder: Path) -> None:
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty; choose another folder for the suite")
    folder.mkdir(parents=True, exist_ok=True)


def _with_results(entries: Iterator[SuiteEntry], report: SuiteReport) -> Iterator[tuple[SuiteEntry, Feed]]:
    """Yield the entries with the expected outputs of their first feed; count those that are left out in `report`."""
    met: set[str] = set()
    for entry in entries:
        reason, expected = checked(entry, met)
        if expected is None:
            report.left_out[reason] += 1
        else:
            yield entry, expected[0]


def _taken(entries: Iterator[SuiteEntry], target: str, report: SuiteReport) -> Iterator[tuple[SuiteEntry, Feed]]:
    """Yield the entries that the compiler does not refuse as unsupported, as `_with_results` does."""
    with LocalPool(target, 1, Limits(seconds=60.0, memory=8 << 30)) as pool:
        for entry, expected in _with_results(entries, report):
            (outcome,) = pool.run([Run(entry.case, target, Build("full"))])
            if isinstance(outcome, Rejected | Unsupported):
                report.left_out["the compiler does not support it"] += 1
            else:
                yield entry, expected


def _story(entry: SuiteEntry, expected: Feed) -> UpstreamStory:
    return UpstreamStory(
        entry.case.program.payload, entry.case.feeds[0], tuple(expected), "full", (), "wrong", "", entry.name
    )


def _module(entry: SuiteEntry, target: str, expected: Feed, place: int) -> str:
    """Return the module that checks output `place`. Raises MiscompileError for a program without a lowering."""
    value = expected[place]
    rtol, atol = entry.tolerances or tolerances(entry.case, [expected])
    numbers = np.abs(value.numbers().astype(np.float64)) if value.array.dtype.kind in "fiub" else np.zeros(1)
    largest = float(np.max(numbers, initial=0.0, where=np.isfinite(numbers)))
    details = {"allowed": atol + rtol * largest, "output": place, "feed": 0}
    run = Run(entry.case, target, Build("full"))
    evidence = Evidence("wrong", "fixed", "", run, None, entry.case.program.outputs[place].name, details)
    write = partial(
        write_script, entry.case, evidence, expected=value, template=TEST_TEMPLATE,
        title=f"{entry.name}, as a library's own test calls it",
    )  # fmt: skip
    return write(plain=True) or write()


def _reason(error: MiscompileError) -> str:
    text = str(error)
    return "it has no lowering" if "lowering" in text else text[:80]
