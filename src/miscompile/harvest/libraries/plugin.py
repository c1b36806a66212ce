"""A pytest plugin that records how a project's own tests use operators: `pytest --miscompile-record FILE`.

Without the option the plugin does nothing and imports only pytest. With pytest-xdist each worker records, and the
main process merges the recordings.
"""

import importlib
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

_LIBRARIES = ("torch", "keras")
_KEY = "miscompile_instances"
"""The key under which a worker of pytest-xdist returns its instances and the counts of uses that it could not
record."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("miscompile", "recording of operator instances")
    group.addoption(
        "--miscompile-record",
        metavar="FILE",
        default=None,
        help="write the operator instances that the tests use to FILE (.jsonl.gz), for `miscompile migrate`",
    )
    group.addoption(
        "--miscompile-library",
        choices=_LIBRARIES,
        default=None,
        help="the library to watch from the beginning; without it, each that the tests have imported",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Start recording if the option is given.

    Raises pytest's UsageError now for errors that would otherwise appear after the tests: a file that cannot be
    written, a library that is not installed.
    """
    path = config.getoption("--miscompile-record", default=None)
    if path is not None:
        if not hasattr(config, "workerinput"):  # a worker of pytest-xdist writes nothing
            _check(Path(path).absolute())
        config.pluginmanager.register(Recording(config, Path(path)), "miscompile-recording")


def _check(path: Path) -> None:
    """Raise pytest's UsageError unless archives of one library and of several can be written."""
    archive: Any = importlib.import_module("miscompile.instances.archive")
    errors: Any = importlib.import_module("miscompile.base.errors")
    try:
        for place in (path, *(_beside(path, library) for library in _LIBRARIES)):
            archive.check_place(place)
    except errors.UsageError as error:
        raise pytest.UsageError(f"--miscompile-record: {error}") from None


class Recording:
    """Records the use of libraries during a session, and writes one archive for each library at its end.

    A library is hooked once it has been imported, which the plugin checks after the collection of a file and before
    a test. A library named by the user is imported at once, so that modules constructed during the import of test
    files are recorded too.
    """

    def __init__(self, config: pytest.Config, path: Path) -> None:
        self._config, self._path = config, path.absolute()
        self._chosen: str | None = config.getoption("--miscompile-library")
        self._stops: list[Callable[[], None]] = []
        self._hooked: set[str] = set()
        self._found: list[bytes] = []
        self._recording: Any = importlib.import_module("miscompile.harvest.libraries.hooks.recording")
        self._code: Any = importlib.import_module("miscompile.instances.code")
        self._into = self._recording.Collector(self._keep, "tests")
        if self._chosen:
            self._hook_chosen(self._chosen)

    def _hook_chosen(self, library: str) -> None:
        """Import and hook a library that is not hooked yet. Raises pytest's UsageError when the import fails."""
        try:
            self._hook(library)
        except Exception as error:  # noqa: BLE001 - an import can raise anything, for example because of the back end chosen for Keras
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise pytest.UsageError(f"--miscompile-library: {library} cannot be watched here ({reason})") from None

    def _keep(self, instance: Any) -> None:  # noqa: ANN401 - an Instance, whose module is imported late
        self._found.append(self._code.encoded(instance))

    def _hook(self, library: str) -> None:
        if library not in self._hooked:
            self._hooked.add(library)
            self._stops.append(self._recording.hook_of(library)(self._into))

    def _hook_imported(self) -> None:
        for library in [self._chosen] if self._chosen else _LIBRARIES:
            if library in sys.modules:
                self._hook(library)

    def pytest_collectreport(self) -> None:
        """Hook libraries that a test file has imported."""
        self._hook_imported()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Store the name of the current test."""
        self._hook_imported()
        self._into.test = nodeid

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:  # noqa: ANN401 - a worker of pytest-xdist
        """Add the recording of a worker."""
        lines, left = getattr(node, "workeroutput", {}).get(_KEY, ((), {}))
        self._found += [line.encode() for line in lines]
        self._into.left.update(left)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """End the recording; a worker sends it to the main process, which writes all of it."""
        while self._stops:
            self._stops.pop()()
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output[_KEY] = [line.decode() for line in self._found], dict(self._into.left)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:  # noqa: ANN401 - pytest's reporter
        """Write the archives, and print their paths."""
        archive: Any = importlib.import_module("miscompile.instances.archive")
        found = list(archive.distinct(self._code.decoded(line) for line in self._found))
        libraries = sorted({one.library for one in found})
        for library in libraries:
            path = self._path if len(libraries) == 1 else _beside(self._path, library)
            own = tuple(one for one in found if one.library == library)
            figures = {"instances": len(own), "operators": len({one.api for one in own}), "left": dict(self._into.left)}
            made = archive.Archive(library, own, _versions(library), figures)
            path = _written(made, path, terminalreporter.write_line)
            told = f"{len(own)} instances of {figures['operators']} {library} operators in {path}"
            terminalreporter.write_line(f"miscompile: {told}")
        if not libraries:
            terminalreporter.write_line("miscompile: the tests used no operators, nothing was written")


def _written(found: Any, path: Path, on_progress: Callable[[str], None]) -> Path:  # noqa: ANN401 - an Archive, imported late
    """Write an archive and return its path; in a temporary folder if the requested path is no longer writable."""
    write: Any = importlib.import_module("miscompile.instances.archive").write_archive
    try:
        write(found, path)
    except importlib.import_module("miscompile.base.errors").UsageError as error:
        on_progress(f"miscompile: {error}")
        path = Path(tempfile.mkdtemp(prefix="miscompile-")) / path.name
        write(found, path)
    return path


def _versions(library: str) -> dict[str, str]:
    """Return the version of a library; empty for one that was not installed under its name."""
    with suppress(metadata.PackageNotFoundError):
        return {library: metadata.version(library)}
    return {}


def _beside(path: Path, library: str) -> Path:
    """Return the path for one library of several: `FILE` with the library's name in front of its suffixes."""
    stem, dot, rest = path.name.partition(".")
    return path.with_name(f"{stem}-{library}{dot}{rest}")
