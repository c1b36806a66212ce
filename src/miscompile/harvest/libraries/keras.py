"""Instances of Keras, recorded by hooks while tests run: those in its own package, or any others."""

import os
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from miscompile.base.errors import UsageError
from miscompile.core.events import ProgressListener
from miscompile.harvest.libraries.children import Child, Harvested, run_child, run_files
from miscompile.harvest.libraries.hooks.recording import LIMIT
from miscompile.harvest.patterns.suites import files_of
from miscompile.harvest.processes import need
from miscompile.instances.archive import Archive, distinct
from miscompile.instances.sequence import sequences

_RECORDER = "miscompile.harvest.libraries.hooks.record_tests"
_DISTRIBUTIONS = ("keras", "jax")

_OPERATORS = frozenset({"layers", "ops", "activations"})
"""Folders of the package with tests of operators."""

_OTHERS = frozenset({"applications", "callbacks", "datasets", "distribution", "optimizers", "saving", "wrappers"})
"""Folders with tests of other things: training, files, whole networks."""


def own_tests() -> list[Path]:
    """Return the test files inside the installed Keras. Raises UsageError when it is not installed."""
    need({"keras": "keras", "jax": "jax"}, "to harvest tests of Keras")
    spec = find_spec("keras")
    if spec is None or spec.origin is None:
        raise UsageError("keras has no folder with tests; pip install keras")
    return [path for path in files_of(Path(spec.origin).parent) if path.name.endswith("_test.py")]


def operators_first(files: Sequence[Path]) -> list[Path]:
    """Return all files, those that test operators first."""
    return sorted(
        files, key=lambda path: (not _OPERATORS.intersection(path.parts), bool(_OTHERS.intersection(path.parts)))
    )


FIRST, FIRST_SECONDS = 20, 60.0
"""The number of files, and the timeout of each in seconds, of a harvest that the user did not request by name."""


def harvest_keras(
    on_progress: ProgressListener, files: Sequence[Path] | None = None, seconds: float = 600.0, limit: int = LIMIT
) -> Archive:
    """Return the instances in the tests of the installed Keras; with `files` only in those.

    Each file runs in a process of its own, on the JAX back end, for at most `seconds`; at most `limit` instances of an
    operator are kept per file. An interruption ends the harvest and returns the instances found until then. Raises
    UsageError when Keras or JAX is missing.
    """
    chosen = operators_first(own_tests()) if files is None else list(files)
    need({"keras": "keras", "jax": "jax"}, "to harvest tests of Keras")
    harvested = Harvested()
    with tempfile.TemporaryDirectory(prefix="miscompile-") as folder:
        for number, path in enumerate(chosen, 1):
            on_progress(f"[{number}/{len(chosen)}] {path.name}")
            before = sum(harvested.tests.values()), len(harvested.instances)
            run_child(
                _child(path.resolve(), Path(folder).resolve() / f"{number:04d}", seconds, limit), harvested, path.name
            )
            tests, instances = sum(harvested.tests.values()) - before[0], len(harvested.instances) - before[1]
            on_progress(f"    {tests} tests, {instances} instances")
            if harvested.stopped:
                break
    return _archive(harvested, _DISTRIBUTIONS)


def harvest_first(on_progress: ProgressListener) -> Archive:
    """Return the instances in the files that test operators, with a timeout of a minute per file; migrations use
    these first.

    All files take more than an hour. Raises UsageError as `harvest_keras` does.
    """
    on_progress(f"taking the first {FIRST} of {len(own_tests())} test files; `miscompile harvest keras` takes them all")
    return harvest_keras(on_progress, operators_first(own_tests())[:FIRST], FIRST_SECONDS)


def _child(path: Path, out: Path, seconds: float, limit: int) -> Child:
    """Return the process for a file. It runs in a folder of its own, because Keras' folders contain a `numpy.py` and
    a `random`."""
    words = ("keras", str(path), str(out), str(limit))
    return Child(_RECORDER, words, out, seconds, home=out)


def harvest_keras_tests(
    path: Path, on_progress: ProgressListener, seconds: float = 600.0, limit: int = LIMIT
) -> Archive:
    """Return the instances of Keras in the tests at `path`, a file or a folder of test files.

    They run on the back end in `KERAS_BACKEND`, by default on JAX. Raises UsageError for a path without tests, and
    when Keras is missing.
    """
    files = files_of(path)
    need({"keras": "keras"}, "to harvest tests of Keras")
    with tempfile.TemporaryDirectory(prefix="miscompile-") as folder:
        harvested = run_files("keras", files, Path(folder), seconds, on_progress, limit)
    return _archive(harvested, (*_DISTRIBUTIONS, *_back_end()))


def _archive(harvested: Harvested, distributions: Sequence[str]) -> Archive:
    """Return an archive of the harvested instances, and of some of its layers in sequences."""
    harvested.instances += sequences(list(distinct(harvested.instances)))
    return harvested.archive("keras", distributions)


def _back_end() -> tuple[str, ...]:
    chosen = os.environ.get("KERAS_BACKEND", "jax")
    return () if chosen in _DISTRIBUTIONS else (chosen,)
