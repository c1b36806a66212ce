"""Instances of PyTorch: its operator database, and any tests run under hooks."""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from miscompile.base.progress import ProgressListener
from miscompile.harvest.libraries.children import Child, Harvested, run_child, run_files
from miscompile.harvest.libraries.hooks.recording import LIMIT
from miscompile.harvest.patterns.suites import files_of
from miscompile.harvest.processes import need
from miscompile.instances.archive import Archive

_DATABASE = "miscompile.harvest.libraries.hooks.torch_database"
_EVERY = 25
"""Entries of the database between two lines of progress."""


def harvest_database(
    say: ProgressListener, samples: int = 24, references: int = 12, seconds: float = 3600.0, only: Sequence[str] = ()
) -> Archive:
    """Return the instances of PyTorch's own database of operators and modules.

    At most `samples` inputs are taken for each operator and element type, and `references` of the longer list of
    reference inputs. `only` names entries, where not all are wanted. An interruption ends the harvest and what was
    found comes back; so does what was found after `seconds`. Raises UsageError when a package is missing.
    """
    packages = {name: name for name in ("torch", "expecttest", "hypothesis")}
    need(packages, "the operator database of PyTorch")
    harvested = Harvested()

    def on_line(line: str) -> None:
        told = _parsed_progress(line)
        if told and (told["number"] % _EVERY == 0 or told["number"] == told["of"]):
            say(f"[{told['number']}/{told['of']}] {told['operator']}")

    with tempfile.TemporaryDirectory(prefix="miscompile-") as folder:
        out = Path(folder)
        words = (str(out), str(samples), str(references), *only)
        run_child(Child(_DATABASE, words, out, seconds, out), harvested, "the database", on_line)
    return harvested.archive("torch", ("torch",))


def harvest_tests(path: Path, say: ProgressListener, seconds: float = 600.0, limit: int = LIMIT) -> Archive:
    """Return the instances that the tests at `path` use: a file, or a folder of `test_*.py` and `*_test.py`.

    Each file runs for at most `seconds`, and at most `limit` instances of an operator are kept of it. Raises UsageError
    for a path without tests, and when torch is missing.
    """
    files = files_of(path)
    need({"torch": "torch"}, "to harvest tests of PyTorch")
    with tempfile.TemporaryDirectory(prefix="miscompile-") as folder:
        harvested = run_files("torch", files, Path(folder), seconds, say, limit)
    return harvested.archive("torch", ("torch",))


def _parsed_progress(line: str) -> dict[str, int] | None:
    """Return what a line of progress says; None for other output."""
    if not line.startswith('{"operator"'):
        return None
    told: dict[str, int] = json.loads(line)
    return told
