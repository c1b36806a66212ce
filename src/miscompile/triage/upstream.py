"""Tests in the form of a target's own repository, where that is no pytest module, such as lit tests.

A target names the function that writes them (`About.upstream`). It runs in a child process,
`python -m miscompile.triage.upstream`, which imports the compiler. Standard input is one JSON object: `function`
(`module:function`) and `stories`, a list of objects with `model` (path of the program), `feed` and `expected` (paths of
npz files with the tensors in their order), `dtypes` (their element types, by the same two names), `level`, `off`
(passes), `kind`, `stage` and `name`. The child prints a JSON list with, for each story, an object from file names to
texts; it is empty where the function raised an error, which goes to standard error.
"""

import json
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from miscompile.base.child import collect
from miscompile.core.tensor import Tensor
from miscompile.targets.registry import load_attribute
from miscompile.targets.upstream import UpstreamStory

SECONDS = 60.0
"""The time limit of a child with one story; each further one gets a tenth of it."""
LONGEST = 100_000
"""Characters of a file; nobody puts a longer test into a repository."""


def upstream_files(function: str, stories: Sequence[UpstreamStory]) -> list[dict[str, str]]:
    """Return for each story the files, by name, that `function` writes.

    There are none where the function fails, where a file is too long, and for values that are texts.
    """
    with TemporaryDirectory(prefix="miscompile-") as place:
        orders = [_order(story, Path(place), number) for number, story in enumerate(stories)]
        given = json.dumps({"function": function, "stories": orders}).encode()
        seconds = SECONDS * (1 + len(stories) / 10)
        said = collect([sys.executable, "-m", __name__], given=given, seconds=seconds)
    found = _printed(said.output())
    return [*found, *({} for _ in stories[len(found) :])]


def _printed(output: str) -> list[dict[str, str]]:
    """Read what the child printed, which may follow output of the compiler."""
    line = (output.strip().splitlines() or [""])[-1]
    try:
        found = json.loads(line)
    except ValueError:
        return []
    return [dict(files) if all(len(text) <= LONGEST for text in files.values()) else {} for files in found]


def _order(story: UpstreamStory, place: Path, number: int) -> dict[str, Any]:
    model = place / f"model{number}"
    model.write_bytes(story.payload)
    order: dict[str, Any] = {
        "model": str(model), "level": story.level, "off": list(story.off), "kind": story.kind, "stage": story.stage,
        "name": story.name, "dtypes": {},
    }  # fmt: skip
    for key, values in (("feed", story.feed), ("expected", story.expected)):
        if values is not None:
            path = place / f"{key}{number}.npz"
            np.savez(path, *[_plain(one) for one in values])
            order[key] = str(path)
            order["dtypes"][key] = [one.dtype for one in values]
    return order


def _plain(value: Tensor) -> Any:  # noqa: ANN401 - an array of any type
    return value.array.astype(str) if value.array.dtype == object else value.array


def _loaded(order: Mapping[str, Any], key: str) -> tuple[Tensor, ...] | None:
    if key not in order:
        return None
    with np.load(order[key]) as arrays:
        held = [arrays[f"arr_{place}"] for place in range(len(arrays.files))]
    return tuple(Tensor(dtype, array) for dtype, array in zip(order["dtypes"][key], held, strict=True))


def _written(write: Callable[[UpstreamStory], Mapping[str, str]], order: Mapping[str, Any]) -> Mapping[str, str]:
    feed, expected = _loaded(order, "feed") or (), _loaded(order, "expected")
    if any(value.dtype == "string" for value in (*feed, *(expected or ()))):
        return {}
    payload = Path(order["model"]).read_bytes()
    told = {name: order[name] for name in ("level", "kind", "stage", "name")}
    try:
        return write(UpstreamStory(payload, feed, expected, off=tuple(order["off"]), **told))
    except Exception:  # noqa: BLE001 - the compiler's importer raises whatever it likes
        traceback.print_exc()
        return {}


def _print(order: Mapping[str, Any]) -> None:
    write = load_attribute(order["function"])
    print(f"\n{json.dumps([dict(_written(write, one)) for one in order['stories']])}")


if __name__ == "__main__":
    _print(json.load(sys.stdin))
