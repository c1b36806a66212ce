"""The phase that introduces a finding's fault, found by a child process: `python -m miscompile.targets.iree.trace`.

Standard input is one JSON object: `model` (path of an ONNX file), `feed` (path of an .npz with the inputs by name),
`level` and `disabled` of the faulty build, `outputs` (their number) and `wrong` (the index of a wrong output; null
when the build fails). Standard output is one JSON object: `phase`, `fails`, `detail`, or an empty object when no
single phase introduces the fault. It is a separate process, because importing a model needs IREE's Python package.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from miscompile.core.tensor import Array
from miscompile.targets.iree.flags import flags
from miscompile.targets.iree.phases import bisect_phases, outputs_of
from miscompile.targets.iree.runner import compile_text, import_text

_TOLERANCE = 1e-3
"""A tolerance that only excludes rounding, because the difference is already known to be a bug."""


def trace(order: dict[str, Any]) -> dict[str, Any]:
    """Return the object for standard output; `order` is the one from standard input."""
    text = import_text(Path(order["model"]).read_bytes()).encode()
    inputs = list(np.load(order["feed"]).values())
    faulty, sound = flags(order["level"], order["disabled"]), flags("off")
    right = _right(text, sound, inputs, order)
    blame = bisect_phases(text, faulty, sound, lambda bytecode: _is_wrong(bytecode, inputs, order, right))
    return {} if blame is None else {"phase": blame.phase, "fails": blame.fails, "detail": blame.detail}


def _right(text: bytes, sound: tuple[str, ...], inputs: list[Array], order: dict[str, Any]) -> Array | None:
    """Return the output of the build with the correct flags; None when that build fails too."""
    if order["wrong"] is None:
        return None
    found = outputs_of(compile_text(text.decode(), sound), inputs, order["outputs"])
    return None if found is None else found[order["wrong"]]


def _is_wrong(bytecode: bytes, inputs: list[Array], order: dict[str, Any], right: Array | None) -> bool:
    found = outputs_of(bytecode, inputs, order["outputs"])
    if found is None:
        return True
    if right is None:
        return False
    got = found[order["wrong"]]
    return got.shape != right.shape or not np.allclose(got, right, _TOLERANCE, _TOLERANCE, equal_nan=True)


if __name__ == "__main__":
    print(json.dumps(trace(json.load(sys.stdin))))
