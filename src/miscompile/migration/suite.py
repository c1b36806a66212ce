"""Regression suites: single-operator models in the layout of onnx's backend tests, for use in a compiler's own CI.

    FOLDER/KIND/test_0001_Conv/model.onnx                      the model; the number is its rank
    FOLDER/KIND/test_0001_Conv/data.json                       its tolerances, as onnx's loader reads them
    FOLDER/KIND/test_0001_Conv/test_data_set_0/input_0.pb      inputs and expected outputs as TensorProto
    FOLDER/suite.json                                          the list of tests with their origins
    FOLDER/test_suite.py, FOLDER/conftest.py                   runs them with pytest on any ONNX backend

Layout: https://github.com/onnx/onnx/blob/main/docs/OnnxBackendTest.md. The kind must not be `node`, because under
that name onnx's loader reads no folder, but makes its own node cases again.
"""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from miscompile.base.digest import digest_bytes
from miscompile.base.dtypes import DTYPES, is_float
from miscompile.base.errors import ModelError, UsageError
from miscompile.core.case import Case, Feed
from miscompile.graph.emit import tensor_proto
from miscompile.graph.model import Node
from miscompile.graph.randomness import RANDOM
from miscompile.graph.read import read
from miscompile.producers.instances.evaluation import evaluated
from miscompile.producers.instances.onnx_values import from_array, to_array

KIND = "migrated"
_FILES = {"suite_script.py": "test_suite.py", "suite_options.py": "conftest.py"}


@dataclass(frozen=True, slots=True)
class SuiteEntry:
    """A test to export. `expected` holds a tuple of outputs for each feed, None to compute them with onnx's evaluator.

    `tolerances` are relative and absolute; None stands for those of the element types.
    """

    name: str
    case: Case
    expected: Sequence[Feed] | None = None
    tolerances: tuple[float, float] | None = None


@dataclass(slots=True)
class SuiteReport:
    """The names of the exported tests, in the order of their ranks, and the number of omitted ones, by reason."""

    written: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


def export_suite(entries: Iterable[SuiteEntry], folder: Path, kind: str = KIND, most: int | None = None) -> SuiteReport:
    """Write `entries`, in the order of their ranks, as a suite into `folder`, which must be new or empty.

    `most` limits the number of tests that are written. The same model with the same inputs is written once. Left out
    and counted: programs that are no ONNX models, operators that draw numbers, and those that onnx's evaluator cannot
    run when nothing else says what to expect.

    Raises UsageError when the folder cannot be written, holds something, or is of kind `node`.
    """
    if kind == "node":
        raise UsageError("onnx's loader makes its own cases for kind 'node'; choose another name for the suite's")
    report = SuiteReport()
    met: set[str] = set()
    listed: list[dict[str, Any]] = []
    try:
        if folder.is_dir() and any(folder.iterdir()):
            raise UsageError(f"{folder} is not empty; choose another folder for the suite")
        for entry in entries:
            reason, expected = checked(entry, met)
            if expected is None:
                report.left_out[reason] += 1
                continue
            name = ranked_name(len(report.written) + 1, entry.name)
            listed.append({"name": name, **_written(entry, expected, folder / kind / name)})
            report.written.append(name)
            if len(report.written) == most:
                break
        _frame(folder, kind, listed)
    except OSError as error:
        raise UsageError(f"cannot write the suite to {folder}: {error.strerror or error}") from None
    return report


def ranked_name(rank: int, operator: str) -> str:
    """Return the name of the test with this rank, such as `test_0001_Conv`."""
    return f"test_{rank:04d}_{re.sub(r'[^A-Za-z0-9]+', '_', operator).strip('_')}"


def checked(entry: SuiteEntry, met: set[str]) -> tuple[str, Sequence[Feed] | None]:
    """Return the expected outputs, or the reason why the entry is left out."""
    case = entry.case
    if case.program.kind != "onnx":
        return "no ONNX model", None
    parts = [f"{one.dtype}{one.shape}".encode() + _bytes(one.array) for feed in case.feeds for one in feed]
    digest = digest_bytes(case.program.payload, *parts)
    if digest in met:
        return "a repetition", None
    met.add(digest)
    model = read(case.program.payload)
    if any(_draws(node, model.opset) for node in model.graph.nodes):
        return "draws numbers", None
    if entry.expected is not None:
        return "", entry.expected
    if model.opset < 14 and any(node.op == "BatchNormalization" and not node.domain for node in model.graph.nodes):
        return "the reference evaluator trains it", None  # it uses the mean of the batch, whatever the attributes say
    names = [port.name for port in case.program.inputs]
    expected: list[Feed] = []
    try:
        for feed in case.feeds:
            found = evaluated(model, {name: to_array(one) for name, one in zip(names, feed, strict=True)})
            expected.append(tuple(from_array(value) for value in found.values()))
    except (ModelError, ValueError, TypeError, AttributeError):
        return "the reference evaluator does not run it", None
    return "", expected


def _draws(node: Node, opset: int) -> bool:
    """Tell whether a node draws numbers, as Dropout does in training: by an input, before operator set 7 by default."""
    if node.op == "Dropout" and not node.domain:
        given = node.attributes.get("is_test")
        return len(node.inputs) > 2 or (opset < 7 and not (given and given.value))
    return node.op in RANDOM and not node.domain


def _bytes(array: Any) -> bytes:  # noqa: ANN401 - an array of any type
    return repr(array.tolist()).encode() if array.dtype == object else array.tobytes()


def _written(entry: SuiteEntry, expected: Sequence[Feed], folder: Path) -> dict[str, Any]:
    program = entry.case.program
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(program.payload)
    for row, (feed, results) in enumerate(zip(entry.case.feeds, expected, strict=True)):
        place = folder / f"test_data_set_{row}"
        place.mkdir()
        for stem, ports, values in (("input", program.inputs, feed), ("output", program.outputs, results)):
            for number, (port, value) in enumerate(zip(ports, values, strict=True)):
                data = tensor_proto(value, port.name).SerializeToString()
                (place / f"{stem}_{number}.pb").write_bytes(data)
    rtol, atol = entry.tolerances or tolerances(entry.case, expected)
    (folder / "data.json").write_text(json.dumps({"rtol": rtol, "atol": atol}) + "\n", "utf-8")
    recipe = entry.case.recipe
    return {"operator": recipe.get("api", entry.name), "origin": recipe.get("origin", ""), "rtol": rtol, "atol": atol}


def tolerances(case: Case, expected: Sequence[Feed]) -> tuple[float, float]:
    """Return relative and absolute tolerance: 64 and 8 units in the last place of the least precise element type.

    Those of float32 are not below 1e-3 and 1e-5, onnx's and the usual, since sums are not ordered. Zero for whole
    numbers.
    """
    dtypes = {one.dtype for feed in (*case.feeds, *expected) for one in feed}
    steps = [DTYPES[dtype].eps for dtype in dtypes if is_float(dtype)]
    steps += [2.0**-23 for dtype in dtypes if DTYPES[dtype].kind == "complex"]
    if not steps:
        return 0.0, 0.0
    step = max(steps)
    return min(max(64 * step, 1e-3 if step > 2.0**-30 else 1e-7), 0.3), min(max(8 * step, 1e-5), 0.1)


def _frame(folder: Path, kind: str, listed: list[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    made = {"miscompile": version("miscompile"), "onnx": version("onnx")}
    data = {"kind": kind, "made_with": made, "tests": listed}
    (folder / "suite.json").write_text(json.dumps(data, indent=1) + "\n", "utf-8")
    for source, target in _FILES.items():
        shutil.copyfile(Path(__file__).with_name(source), folder / target)
