"""The sources of pairs that `miscompile harvest` accepts: suites of tests, and folders of models named after passes.

Compilers have models for the tests of their passes, and users have models on which a pass failed. Of these no test
runs: the name of the folder, or of the file, is the pass.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from miscompile.base.errors import UsageError
from miscompile.core.events import ProgressListener
from miscompile.harvest.patterns.pairs import Gathered, Pair
from miscompile.harvest.patterns.suites import SUITES, check_packages, files_of, run_suite
from miscompile.targets.registry import parse_target, target_names

MODELS = "models"
"""The name of the source that is a folder of models."""

SOURCES = (*SUITES, MODELS)
"""Sources whose pairs contain ONNX models."""


def gather(source: str, path: Path, folder: Path, seconds: float, on_progress: ProgressListener) -> Gathered:
    """Return the pairs that `source` has at `path`; models constructed by tests are written to `folder`.

    `seconds` limits each test file. Raises UsageError for a path without such sources, and when a package is missing
    that the tests need.
    """
    if source == MODELS:
        passes = {name for target in target_names() for name in parse_target(target).about.passes}
        return gather_models(path, passes)
    if source not in SUITES:
        raise UsageError(f"there is no source {source}; there are: {', '.join(SOURCES)}")
    files = files_of(path)
    check_packages(SUITES[source])
    return run_suite(SUITES[source], files, folder, seconds, on_progress)


_TELLING = 8
"""The shortest name of a pass that counts in a file name; shorter ones (dce, fusion) occur there by chance."""


def gather_models(folder: Path, passes: Iterable[str]) -> Gathered:
    """Return a pair for every `*.onnx` file below `folder`.

    In `FOLDER/PASS/.../any.onnx` the pass is PASS, in the spelling of `passes` if it is one of them. For a file in
    `folder` itself the pass is the longest one that its name contains, ignoring case and separators; it is empty if
    the name contains none. Raises UsageError when there is no model.
    """
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}")
    files = sorted(path for path in folder.rglob("*.onnx") if path.is_file())
    if not files:
        raise UsageError(f"there is no *.onnx file in {folder}")
    known = {_plain(name): name for name in passes}
    gathered = Gathered()
    gathered.pairs = [Pair(path, _named(path, folder, known), None, str(path.relative_to(folder))) for path in files]
    gathered.sources["ran"] = len(files)
    return gathered


def _named(path: Path, folder: Path, known: Mapping[str, str]) -> str:
    inner = path.relative_to(folder)
    if len(inner.parts) > 1:
        return known.get(_plain(inner.parts[0]), inner.parts[0])
    plain = _plain(inner.stem)
    return known.get(max((name for name in known if name in plain and len(name) >= _TELLING), key=len, default=""), "")


def _plain(name: str) -> str:
    """Return letters and digits of a name in lower case."""
    return re.sub(r"[^a-z0-9]", "", name.lower())
