"""Pairs from a folder of models whose names say which pass they are for.

Compilers keep models for the tests of their passes, and people keep models on which a pass went wrong. No test needs
to run: the name of the folder, or of the file, is the pass.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from miscompile.base.errors import UsageError
from miscompile.harvest.patterns.pairs import Gathered, Pair

_TELLING = 8
"""Shorter names of passes (dce, fusion) stand in names of files by chance."""


def gather_models(folder: Path, passes: Iterable[str]) -> Gathered:
    """Return a pair for every `*.onnx` file below `folder`.

    In `FOLDER/PASS/.../any.onnx` the pass is PASS, in the spelling of `passes` if one of them is meant. A file that
    lies in `folder` itself is for the pass that its name holds, whatever the case and the separators of words: the
    longest of several, and none when there is none. Raises UsageError when there is no model.
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
