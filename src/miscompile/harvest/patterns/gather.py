"""The kinds of sources that `miscompile harvest` accepts for pairs."""

from pathlib import Path

from miscompile.base.errors import UsageError
from miscompile.core.events import ProgressListener
from miscompile.harvest.patterns.model_folder import gather_models
from miscompile.harvest.patterns.pairs import Gathered
from miscompile.harvest.patterns.suites import SUITES, check_packages, files_of, run_suite
from miscompile.targets.registry import parse_target, target_names

MODELS = "models"
"""The name of the source that is a folder of models."""

SOURCES = (*SUITES, MODELS)
"""Sources whose pairs contain ONNX models."""


def gather(source: str, path: Path, folder: Path, seconds: float, say: ProgressListener) -> Gathered:
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
    return run_suite(SUITES[source], files, folder, seconds, say)
