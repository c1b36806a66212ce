"""Tests in the form of a target's own repository, where that is no pytest module, such as lit tests.

A target names the function that writes them (`About.upstream`). It runs in a child process,
`python -m miscompile.triage.upstream`, which imports the compiler. Standard input is one JSON object: `function`
(`module:function`), `model` (path of the program), `feed` and `expected` (paths of npz files with the tensors in their
order), `dtypes` (their element types, by the same two names), `level` and `off` (passes), `kind` and `name`. The child
prints a JSON object from file names to texts.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from miscompile.base.child import collect
from miscompile.core.case import Case
from miscompile.core.finding import Signature
from miscompile.core.run import Build
from miscompile.core.tensor import Tensor
from miscompile.targets.registry import load_attribute
from miscompile.targets.upstream import UpstreamStory

SECONDS = 60.0
LONGEST = 100_000
"""Characters of a file; nobody puts a longer test into a repository."""


def upstream_files(
    function: str, case: Case, expected: Sequence[Tensor | None] | None, build: Build, signature: Signature, name: str
) -> dict[str, str]:
    """Return the files, by name, that `function` writes for a finding; none where it fails or a file is too long.

    The test is about the first feed of `case`.
    """
    feed = case.feeds[0] if case.feeds else ()
    right = [one for one in expected or () if one is not None]
    if any(one.array.dtype == object for one in (*feed, *right)):
        return {}
    with TemporaryDirectory(prefix="miscompile-") as place:
        model = Path(place) / "model"
        model.write_bytes(case.program.payload)
        order: dict[str, Any] = {
            "function": function, "model": str(model), "feed": _saved(Path(place) / "feed.npz", feed),
            "dtypes": {"feed": [one.dtype for one in feed]}, "level": build.level, "off": sorted(build.disabled),
            "kind": signature.kind, "stage": signature.stage, "name": name,
        }  # fmt: skip
        if expected is not None and len(right) == len(expected):
            order["expected"] = _saved(Path(place) / "expected.npz", right)
            order["dtypes"]["expected"] = [one.dtype for one in right]
        said = collect([sys.executable, "-m", __name__], given=json.dumps(order).encode(), seconds=SECONDS)
    return _files(said.output())


def _files(printed: str) -> dict[str, str]:
    """Read what the child printed, which may follow output of the compiler."""
    line = (printed.strip().splitlines() or [""])[-1]
    try:
        files = json.loads(line)
    except ValueError:
        return {}
    whole = isinstance(files, dict) and all(len(text) <= LONGEST for text in files.values())
    return dict(files) if whole else {}


def _saved(path: Path, tensors: Sequence[Tensor]) -> str:
    np.savez(path, *[one.array for one in tensors])
    return str(path)


def _loaded(order: dict[str, Any], key: str) -> tuple[Tensor, ...] | None:
    if key not in order:
        return None
    with np.load(order[key]) as arrays:
        held = [arrays[f"arr_{place}"] for place in range(len(arrays.files))]
    return tuple(Tensor(dtype, array) for dtype, array in zip(order["dtypes"][key], held, strict=True))


def _print(order: dict[str, Any]) -> None:
    story = UpstreamStory(
        Path(order["model"]).read_bytes(),
        _loaded(order, "feed") or (),
        _loaded(order, "expected"),
        order["level"],
        tuple(order["off"]),
        order["kind"],
        order["stage"],
        order["name"],
    )
    print(f"\n{json.dumps(load_attribute(order['function'])(story))}")


if __name__ == "__main__":
    _print(json.load(sys.stdin))
