"""The validity check: whether onnx's reference evaluator accepts the model of a finding.

When every build of a compiler fails or gives an output of another type, the model itself may be invalid. So the
reference evaluator runs the model on the same feeds, in a process of its own with limits, and its outputs must have the
types that onnx infers.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np

from miscompile.base.child import collect
from miscompile.core.case import Case, Port
from miscompile.core.outcome import Values
from miscompile.core.ports import Runner
from miscompile.core.run import Build, Run
from miscompile.findings.encode import tensor_array
from miscompile.oracles.compare import contradiction

Vote = Literal["accepted", "refused", "silent"]
"""The evaluator gives values of the declared types.

It refuses the model, or gives other types; it exceeds its limits.
"""

VOTER = "reference"
"""The target that runs onnx's reference implementation."""

_CHILD = "miscompile.triage.validity_child"


@dataclass(frozen=True, slots=True)
class ValidityCheck:
    """The vote, and its reason in one line."""

    vote: Vote
    message: str


def accepts(case: Case, seconds: float = 30.0, memory: int = 2 << 30, child: str = _CHILD) -> ValidityCheck:
    """Run `case` on all its feeds with the reference evaluator, within `seconds` and `memory` bytes.

    `child` is the module that is run; its standard output is one JSON object.
    """
    with TemporaryDirectory(prefix="miscompile-") as place:
        _write(case, Path(place))
        done = collect([sys.executable, "-m", child, place, str(memory)], seconds=seconds, folder=Path(place))
    if done.status is None:
        return ValidityCheck("silent", f"onnx's reference evaluator takes more than {seconds:g} s")
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return ValidityCheck("silent", f"onnx's reference evaluator ends with status {done.status}")
    return _judge(answer, case.program.outputs)


def takes(case: Case, runner: Runner) -> bool:
    """Tell whether the reference implementation, as a target of `runner`, gives values of the declared types.

    Faster than `accepts`, so that every step of a reduction can call it.
    """
    (outcome,) = runner.run([Run(case, VOTER, Build("off"), "judge")])
    return isinstance(outcome, Values) and contradiction(case.program.outputs, outcome) is None


def _write(case: Case, folder: Path) -> None:
    (folder / "model.onnx").write_bytes(case.program.payload)
    arrays = {f"{i}_{j}": tensor_array(value) for i, feed in enumerate(case.feeds) for j, value in enumerate(feed)}
    np.savez(folder / "feeds.npz", **arrays)  # type: ignore[arg-type]
    notes = {
        "names": [port.name for port in case.program.inputs],
        "outputs": [port.name for port in case.program.outputs],
        "feeds": [[[value.dtype, list(value.shape)] for value in feed] for feed in case.feeds],
    }
    (folder / "notes.json").write_text(json.dumps(notes), "utf-8")


def _judge(answer: dict[str, Any], ports: tuple[Port, ...]) -> ValidityCheck:
    if "silent" in answer:
        return ValidityCheck("silent", f"onnx's reference evaluator: {answer['silent']}")
    if "refused" in answer:
        return ValidityCheck("refused", f"onnx's reference evaluator refuses the model: {answer['refused']}")
    for row in answer["results"]:
        for port, (dtype, shape) in zip(ports, row, strict=True):
            if not _fits(port, dtype, tuple(shape)):
                declared = f"{port.dtype}{_sizes(port.shape)}"
                given = f"{dtype}{_sizes(shape)}"
                return ValidityCheck(
                    "refused", f"onnx's reference evaluator gives {given} for '{port.name}', not {declared}"
                )
    return ValidityCheck(
        "accepted", "onnx's reference evaluator accepts the model and gives outputs of the inferred types"
    )


def _fits(port: Port, dtype: str, shape: tuple[int, ...]) -> bool:
    if dtype != port.dtype:
        return False
    if port.shape is None:
        return True
    if len(shape) != len(port.shape):
        return False
    return all(want == have or not isinstance(want, int) for want, have in zip(port.shape, shape, strict=True))


def _sizes(shape: Any) -> str:  # noqa: ANN401 - a list from JSON or a port's shape
    return "[?]" if shape is None else f"[{','.join('?' if size is None else str(size) for size in shape)}]"
