"""Instances of Keras: the tests inside its own package, and any other tests, run under hooks."""

import os
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from miscompile.base.errors import UsageError
from miscompile.base.progress import ProgressListener
from miscompile.harvest.libraries.children import Child, Harvested, run_child, run_files
from miscompile.harvest.libraries.hooks.recording import LIMIT
from miscompile.harvest.patterns.suites import files_of
from miscompile.harvest.processes import need
from miscompile.instances.archive import Archive, distinct
from miscompile.instances.sequence import sequences

_RECORDER = "miscompile.harvest.libraries.hooks.record_tests"
_DISTRIBUTIONS = ("keras", "jax")

_OPERATORS = frozenset({"layers", "ops", "activations"})
"""Folders of the package whose tests are of operators."""

_OTHERS = frozenset({"applications", "callbacks", "datasets", "distribution", "optimizers", "saving", "wrappers"})
"""Folders whose tests are of other things: training, files, whole networks."""


def own_tests() -> list[Path]:
    """Return the test files inside the installed Keras. Raises UsageError when it is not here."""
    need({"keras": "keras", "jax": "jax"}, "to harvest tests of Keras")
    spec = find_spec("keras")
    if spec is None or spec.origin is None:
        raise UsageError("keras has no folder with tests; pip install keras")
    return [path for path in files_of(Path(spec.origin).parent) if path.name.endswith("_test.py")]


def operators_first(files: Sequence[Path]) -> list[Path]:
    """Return the files with those in front that test operators; no file is left out."""
    return sorted(
        files, key=lambda path: (not _OPERATORS.intersection(path.parts), bool(_OTHERS.intersection(path.parts)))
    )


FIRST, FIRST_SECONDS = 20, 60.0
"""Files, and seconds for each, of a harvest that nobody has asked for by name."""


def harvest_keras(
    say: ProgressListener, files: Sequence[Path] | None = None, seconds: float = 600.0, limit: int = LIMIT
) -> Archive:
    """Return the instances that the tests inside the installed Keras use, or those of them that are in `files`.

    Each file runs in a process of its own, on the JAX back end, for at most `seconds`; at most `limit` instances of an
    operator are kept of it. An interruption ends the harvest, and what was found comes back. Raises UsageError when
    Keras or JAX is missing.
    """
    chosen = operators_first(own_tests()) if files is None else list(files)
    need({"keras": "keras", "jax": "jax"}, "to harvest tests of Keras")
    harvested = Harvested()
    with tempfile.TemporaryDirectory(prefix="miscompile-") as folder:
        for number, path in enumerate(chosen, 1):
            say(f"[{number}/{len(chosen)}] {path.name}")
            before = sum(harvested.tests.values()), len(harvested.instances)
            run_child(
                _child(path.resolve(), Path(folder).resolve() / f"{number:04d}", seconds, limit), harvested, path.name
            )
            tests, instances = sum(harvested.tests.values()) - before[0], len(harvested.instances) - before[1]
            say(f"    {tests} tests, {instances} instances")
            if harvested.stopped:
                break
    return _archive(harvested, _DISTRIBUTIONS)


def harvest_first(say: ProgressListener) -> Archive:
    """Return the instances of the files that test operators, each for a minute at most: what a migration begins with.

    All files take more than an hour. Raises UsageError as `harvest_keras` does.
    """
    say(f"taking the first {FIRST} of {len(own_tests())} test files; `miscompile harvest keras` takes them all")
    return harvest_keras(say, operators_first(own_tests())[:FIRST], FIRST_SECONDS)


def _child(path: Path, out: Path, seconds: float, limit: int) -> Child:
    """Return the process for a file. Its folder is its own: among Keras' are some called `numpy.py` and `random`."""
    words = ("keras", str(path), str(out), str(limit))
    return Child(_RECORDER, words, out, seconds, home=out)


def harvest_keras_tests(path: Path, say: ProgressListener, seconds: float = 600.0, limit: int = LIMIT) -> Archive:
    """Return the instances of Keras that the tests at `path` use: a file, or a folder of test files.

    They run on the back end that `KERAS_BACKEND` says, else on JAX. Raises UsageError for a path without tests, and
    when Keras is missing.
    """
    files = files_of(path)
    need({"keras": "keras"}, "to harvest tests of Keras")
    with tempfile.TemporaryDirectory(prefix="miscompile-") as folder:
        harvested = run_files("keras", files, Path(folder), seconds, say, limit)
    return _archive(harvested, (*_DISTRIBUTIONS, *_back_end()))


def _archive(harvested: Harvested, distributions: Sequence[str]) -> Archive:
    """Return an archive of what was harvested, with some of its layers in sequences as well."""
    harvested.instances += sequences(list(distinct(harvested.instances)))
    return harvested.archive("keras", distributions)


def _back_end() -> tuple[str, ...]:
    chosen = os.environ.get("KERAS_BACKEND", "jax")
    return () if chosen in _DISTRIBUTIONS else (chosen,)
