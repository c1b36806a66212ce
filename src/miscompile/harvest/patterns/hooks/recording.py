"""Shared parts of the hooks: immediate writing of pairs to a folder, and running a test file.

This runs in the child process. It must not raise exceptions into the tests; models that cannot be stored are counted
by reason.
"""

import json
import os
import sys
import unittest
from collections.abc import Callable
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from miscompile.base.digest import digest_bytes
from miscompile.harvest.patterns.pairs import LINES

MOST_BYTES = 8 << 20
"""The largest stored model in bytes; larger ones are whole networks, not tests of a pattern."""

_PYTEST_OPTIONS = ("-q", "-p", "no:cacheprovider", "--tb=line", "--no-header", "-W", "ignore", "-o", "addopts=")
"""Options of pytest: quiet, without files in the suite's folders, and without the suite's options, which may need
plugins."""


class PairRecorder:
    """Writes models and lines to the folder `out`; each pair of a model and a pass once.

    `test` is the name of the current test.
    """

    def __init__(self, out: Path) -> None:
        out.mkdir(parents=True, exist_ok=True)
        self.test = ""
        self._folder = out
        self._known: set[tuple[str, str, bool | None]] = set()

    def write(self, **line: object) -> None:
        """Write one line and flush it."""
        with (self._folder / LINES).open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(line) + "\n")

    def pair(self, model: bytes, named: str = "", changed: bool | None = None) -> None:
        """Record that the pass `named` ran on `model`, a serialised ModelProto."""
        if len(model) > MOST_BYTES:
            self.left(f"models of more than {MOST_BYTES >> 20} MiB", named)
            return
        name = f"{digest_bytes(model)}.onnx"
        if (name, named, changed) in self._known:
            return
        self._known.add((name, named, changed))
        path = self._folder / name
        if not path.exists():
            unready = path.with_suffix(".part")
            unready.write_bytes(model)
            os.replace(unready, path)
        self.write(model=name, changed=changed, test=self.test, **{"pass": named})

    def left(self, reason: str, named: str = "") -> None:
        """Record that a model could not be stored."""
        self.write(left=reason, test=self.test, **{"pass": named})

    def ran(self, test: str, outcome: str) -> None:
        """Record the outcome of a test: `passed`, `failed` or `skipped`."""
        self.write(ran=test, outcome=outcome)


class _Marks:
    """A pytest plugin that passes the name and outcome of each test to the recorder."""

    def __init__(self, recorder: PairRecorder, after: Callable[[], None]) -> None:
        self._recorder, self._after = recorder, after

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Store the test's name in the file."""
        self._recorder.test = nodeid.rpartition("/")[2]

    def pytest_runtest_logreport(self, report: Any) -> None:  # noqa: ANN401 - pytest's report
        """Record the outcome of the call, or of a setup that failed or skipped."""
        if report.when == "call" or (report.when == "setup" and report.outcome != "passed"):
            self._recorder.ran(self._recorder.test, report.outcome)

    def pytest_runtest_logfinish(self) -> None:
        """Call the hook's function for work after a test."""
        self._after()


class _Result(unittest.TestResult):
    """Passes names and outcomes to the recorder when the tests run without pytest."""

    def __init__(self, recorder: PairRecorder, after: Callable[[], None]) -> None:
        super().__init__()
        self._recorder, self._after = recorder, after

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802 - unittest's name
        """Store the test's name."""
        super().startTest(test)
        self._recorder.test = test.id()

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        """Record the outcome."""
        super().stopTest(test)
        bad = any(test is one for one, _ in (*self.failures, *self.errors))
        skipped = any(test is one for one, _ in self.skipped)
        self._recorder.ran(test.id(), "failed" if bad else "skipped" if skipped else "passed")
        self._after()


def nothing() -> None:
    """Do nothing after a test."""


def run_tests(path: Path, recorder: PairRecorder, after: Callable[[], None] = nothing) -> int:
    """Run the tests in the file `path` with pytest, or with unittest if pytest is not installed.

    Returns 0 when all passed. `after` is called after each test.
    """
    if find_spec("pytest") is not None:
        import pytest

        return int(pytest.main([*_PYTEST_OPTIONS, str(path)], plugins=[_Marks(recorder, after)]))
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[path.stem] = module_from_spec(spec)
    spec.loader.exec_module(module)
    result = _Result(recorder, after)
    unittest.defaultTestLoader.loadTestsFromModule(module).run(result)
    return 0 if result.wasSuccessful() else 1


def main(install: Callable[[PairRecorder], Callable[[], None]]) -> int:
    """Run `TESTFILE OUT` of the command line under the hook of `install`; return the exit code.

    The folder above the file's package is put first in the import path before the hook imports anything, because a
    package under test that is also installed must not be imported twice.
    """
    path, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    sys.path[0:0] = [str(_above_package(path))]
    recorder = PairRecorder(out)
    code = run_tests(path, recorder, install(recorder))
    recorder.write(exit=code)
    return 0


def _above_package(path: Path) -> Path:
    """Return the nearest folder above `path` that is not part of a package."""
    folder = path.parent
    while (folder / "__init__.py").exists():
        folder = folder.parent
    return folder


def line_of(error: BaseException) -> str:
    """Return the class and message of `error` in one shortened line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}".rstrip(": ")
