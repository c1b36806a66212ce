"""Pairs from a folder of models whose names contain the pass that they are for.

Compilers have models for the tests of their passes, and users have models on which a pass failed. No test runs: the
name of the folder, or of the file, is the pass.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from miscompile.base.errors import UsageError
from miscompile.harvest.patterns.pairs import Gathered, Pair

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
