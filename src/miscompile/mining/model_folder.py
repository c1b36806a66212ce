"""Pairs from a folder of models whose names say which pass they are for.

Compilers keep models for the tests of their passes, and people keep models on which a pass went wrong. No test needs
to run: the name of the folder, or of the file, is the pass.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from miscompile.base.errors import UsageError
from miscompile.mining.pairs import Gathered, Pair


def gather_models(folder: Path, passes: Iterable[str]) -> Gathered:
    """Return a pair for every `*.onnx` file below `folder`.

    The pass is the one of `passes` that the file's path names (`FOLDER/PASS/any.onnx`, `FOLDER/pass_test.onnx`,
    whatever the case and the separators of words), the longest of several; else, for a file in a folder of its own
    below `folder`, the name of that folder; else none. Raises UsageError when there is no model.
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


def _named(path: Path, folder: Path, known: dict[str, str]) -> str:
    inner = path.relative_to(folder)
    for part in (inner.stem, *reversed(inner.parts[:-1])):
        plain = _plain(part)
        found = max((name for name in known if name in plain), key=len, default="")
        if found:
            return known[found]
    return inner.parts[0] if len(inner.parts) > 1 else ""


def _plain(name: str) -> str:
    """Return letters and digits of a name in lower case."""
    return re.sub(r"[^a-z0-9]", "", name.lower())
