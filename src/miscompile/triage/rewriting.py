"""The program that the culprit passes leave, from compilers that can write what they have made of an ONNX model.

A target names the function that does so (`About.optimised`). It runs in a child process,
`python -m miscompile.triage.rewriting`, which imports the compiler. Standard input is one JSON object: `function`
(`module:function`), `model` (path of the ONNX file), `level`, `off` (passes) and `into` (path of the file to write).
"""

import json
import sys
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from miscompile.base.child import collect
from miscompile.base.errors import MiscompileError
from miscompile.core.case import Case
from miscompile.graph.model import Model
from miscompile.graph.read import read
from miscompile.graph.text.printer import print_model
from miscompile.targets.registry import load_attribute

SECONDS = 60.0
MOST_NODES = 40
"""A larger result explains nothing to a reader."""


@dataclass(frozen=True, slots=True)
class Rewriting:
    """The program after the passes, and which operators they have removed and added (with repetitions)."""

    after: Model
    removed: tuple[str, ...]
    added: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the fact `rewriting`."""
        return {"after": print_model(self.after), "removed": list(self.removed), "added": list(self.added)}


def rewriting_of(
    function: str, case: Case, level: str, off: Collection[str], seconds: float = SECONDS
) -> Rewriting | None:
    """Return what the compiler makes of the program of `case` at `level` without the passes `off`.

    None when the compilation fails, when the result cannot be read or is too large, or when it is the same program.
    """
    with TemporaryDirectory(prefix="miscompile-") as place:
        before, into = Path(place) / "before.onnx", Path(place) / "after.onnx"
        before.write_bytes(case.program.payload)
        order = {"function": function, "model": str(before), "level": level, "off": sorted(off), "into": str(into)}
        collect([sys.executable, "-m", __name__], given=json.dumps(order).encode(), seconds=seconds)
        try:
            given, made = read(case.program.payload), read(into.read_bytes())
        except (OSError, MiscompileError):
            return None
    old, new = _operators(given), _operators(made)
    if len(made.graph.nodes) > MOST_NODES or (old == new and given.graph.nodes == made.graph.nodes):
        return None
    return Rewriting(made, tuple(sorted((old - new).elements())), tuple(sorted((new - old).elements())))


def _operators(model: Model) -> Counter[str]:
    return Counter(node.op for node in model.graph.nodes)


def _write(order: dict[str, Any]) -> None:
    optimise = load_attribute(order["function"])
    Path(order["into"]).write_bytes(optimise(Path(order["model"]).read_bytes(), order["level"], order["off"]))


if __name__ == "__main__":
    _write(json.load(sys.stdin))
