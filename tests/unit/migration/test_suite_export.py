"""Suites: read by onnx's own loader, run by pytest, and red where a backend is wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

from miscompile.base.errors import UsageError
from miscompile.core.tensor import tensor
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn, Held, Value
from miscompile.migration.suite import SuiteEntry, export_suite
from miscompile.producers.instances.onnx_model import to_onnx_case

X = Held(tensor(np.array([[-1.5, 2.0]], np.float32)))


def entry(op: str, *inputs: Value, version: int = 18, **kwargs: Value) -> SuiteEntry:
    return SuiteEntry(op, to_onnx_case(Instance("onnx", op, "node", kwargs=kwargs, inputs=inputs, version=version)))


def entries() -> list[SuiteEntry]:
    half = Held(tensor(np.array([1.5, -2.0], np.float32), "bfloat16"))
    return [
        entry("Relu", X),
        entry("Relu", X),
        entry("RandomNormalLike", X),
        entry("Cast", half, to=1),
        entry("Cast", X, to=16),
        entry("Constant", value=X),
        entry("Shape", X),
    ]


def run(folder: Path, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rfx", str(folder), *words]
    given = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, env=given, cwd=folder, timeout=120, check=False)


def test_the_layout_is_onnx_s(tmp_path: Path) -> None:
    report = export_suite(entries(), tmp_path / "suite")
    assert report.written == [
        "test_0001_Relu", "test_0002_Cast", "test_0003_Cast", "test_0004_Constant", "test_0005_Shape",
    ]  # fmt: skip
    assert report.left_out == {"a repetition": 1, "draws numbers": 1}
    tests = sorted(load_model_tests(str(tmp_path / "suite"), "migrated"), key=lambda test: test.name)
    for test in tests:
        onnx.load(Path(test.model_dir) / "model.onnx")
    assert [test.name for test in tests] == report.written
    assert tests[0].rtol == 1e-3
    assert tests[4].rtol == 1e-3  # its input is of float32; the output is whole and compared so
    place = tmp_path / "suite" / "migrated" / "test_0001_Relu" / "test_data_set_0"
    expected = onnx.TensorProto.FromString((place / "output_0.pb").read_bytes())
    assert numpy_helper.to_array(expected).tolist() == [[0.0, 2.0]]
    listed = json.loads((tmp_path / "suite" / "suite.json").read_text("utf-8"))
    assert listed["tests"][0]["operator"] == "Relu"


@pytest.mark.slow
@pytest.mark.process
def test_pytest_runs_it_and_sees_what_is_wrong(tmp_path: Path) -> None:
    folder = tmp_path / "suite"
    wrong = SuiteEntry("Neg", entry("Neg", X).case, (((tensor(np.array([[1.5, 2.0]], np.float32))),),))
    export_suite([*entries(), wrong], folder)
    done = run(folder)
    assert "1 failed, 5 passed" in done.stdout, done.stdout
    assert "test_0006_Neg" in done.stdout
    (folder / "known_failures.txt").write_text("# of our backend\ntest_0006_Neg\n", "utf-8")
    assert "5 passed, 1 xfailed" in run(folder).stdout
    (folder / "known_failures.txt").write_text("test_0001_Relu\ntest_0006_Neg\n", "utf-8")
    assert "1 failed, 4 passed, 1 xfailed" in run(folder).stdout  # Relu passes although it is named there


@pytest.mark.slow  # starts pytest, as the test above does
@pytest.mark.process
def test_another_backend_is_an_option(tmp_path: Path) -> None:
    folder = tmp_path / "suite"
    export_suite([entry("Relu", X)], folder)
    (folder / "mine.py").write_text(
        "def is_compatible(model, device):\n    return device != 'none'\n"
        "def prepare(model, device):\n    return __import__(__name__)\n"
        "def run(inputs):\n    return inputs\n",
        "utf-8",
    )
    assert "1 failed" in run(folder, "--onnx-backend", "mine").stdout
    assert "1 failed" in run(folder, ONNX_BACKEND="mine").stdout
    assert "1 skipped" in run(folder, "--onnx-backend", "mine", ONNX_DEVICE="none").stdout


def test_a_folder_in_use_and_onnx_s_own_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("kept", "utf-8")
    with pytest.raises(UsageError, match="not empty"):
        export_suite([entry("Relu", X)], tmp_path)
    with pytest.raises(UsageError, match="node"):
        export_suite([entry("Relu", X)], tmp_path / "new", "node")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_what_nothing_can_say_the_results_of_is_left_out(tmp_path: Path) -> None:
    image = Drawn("float32", (1, 1, 4, 4))
    rois = Held(tensor(np.array([[0, 0, 0, 2, 2]], np.float32)))
    report = export_suite([entry("MaxRoiPool", image, rois, pooled_shape=(2, 2))], tmp_path / "suite")
    assert not report.written
    assert report.left_out == {"the reference evaluator does not run it": 1}


def test_where_the_evaluator_is_wrong_it_is_not_asked(tmp_path: Path) -> None:
    """Before operator set 14 it trains; when it has been mended the rule in `suite` can go."""
    ones = Held(tensor(np.ones(2, np.float32)))
    zeros = Held(tensor(np.zeros(2, np.float32)))
    given = Drawn("float32", (4, 2, 3), 5, 9)
    old = entry("BatchNormalization", given, ones, zeros, zeros, ones, version=9)
    new = entry("BatchNormalization", given, ones, zeros, zeros, ones, version=15)
    report = export_suite([old, new], tmp_path / "suite")
    assert report.left_out == {"the reference evaluator trains it": 1}
    assert len(report.written) == 1
