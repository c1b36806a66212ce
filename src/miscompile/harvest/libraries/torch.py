"""Instances of PyTorch from its operator database, and from any tests, which run under hooks."""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from miscompile.core.events import ProgressListener
from miscompile.harvest.libraries.children import Child, Harvested, run_child, run_files
from miscompile.harvest.libraries.hooks.recording import LIMIT
from miscompile.harvest.patterns.suites import files_of
from miscompile.harvest.processes import need
from miscompile.instances.archive import Archive

_DATABASE = "miscompile.harvest.libraries.hooks.torch_database"
_EVERY = 25
"""Entries of the database between two lines of progress."""


def harvest_database(
    on_progress: ProgressListener,
    samples: int = 24,
    references: int = 12,
    seconds: float = 3600.0,
    only: Sequence[str] = (),
) -> Archive:
    """Return the instances in PyTorch's database of operators and modules.

    At most `samples` inputs are used for each operator and element type, and at most `references` of the longer list
    of reference inputs. `only` names entries; by default all are used. An interruption or the timeout of `seconds`
    ends the harvest and returns the instances found until then. Raises UsageError when a package is missing.
    """
    packages = {name: name for name in ("torch", "expecttest", "hypothesis")}
    need(packages, "the operator database of PyTorch")
    harvested = Harvested()

    def on_line(line: str) -> None:
        told = _parsed_progress(line)
        if told and (told["number"] % _EVERY == 0 or told["number"] == told["of"]):
            on_progress(f"[{told['number']}/{told['of']}] {told['operator']}")

    with tempfile.TemporaryDirectory(prefix="miscompile-") as folder:
        out = Path(folder)
        words = (str(out), str(samples), str(references), *only)
        run_child(Child(_DATABASE, words, out, seconds, out), harvested, "the database", on_line)
    return harvested.archive("torch", ("torch",))


def harvest_tests(path: Path, on_progress: ProgressListener, seconds: float = 600.0, limit: int = LIMIT) -> Archive:
    """Return the instances in the tests at `path`, a file or a folder of `test_*.py` and `*_test.py`.

    Each file runs for at most `seconds`, and at most `limit` instances of an operator are kept per file. Raises
    UsageError for a path without tests, and when torch is missing.
    """
    files = files_of(path)
    need({"torch": "torch"}, "to harvest tests of PyTorch")
    with tempfile.TemporaryDirectory(prefix="miscompile-") as folder:
        harvested = run_files("torch", files, Path(folder), seconds, on_progress, limit)
    return harvested.archive("torch", ("torch",))


def _parsed_progress(line: str) -> dict[str, int] | None:
    """Return the contents of a line of progress; None for other output."""
    if not line.startswith('{"operator"'):
        return None
    told: dict[str, int] = json.loads(line)
    return told
