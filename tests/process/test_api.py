"""The public API with workers: campaigns and comparisons from scripts and threads, and what is left of them."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import psutil
import pytest
from campaigns import all_gone
from onnx import parser

import miscompile
from miscompile.findings.store import Store, holds_campaign

pytestmark = pytest.mark.process

TOY = "toy{bugs=sub_commutes}"
BROKEN = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 17]>
    g (float[n, 4] x) => (float[n, 4] y, float[n, 4] z) { a = Neg (x)  z = Tanh (a)  y = Sub (a, x) }
""")
QUICK: dict[str, Any] = {"workers": 1, "opset": 21, "ops": ("Sub", "Neg", "Relu"), "seed": 0, "checks": ("levels",)}


@pytest.fixture(autouse=True)
def _leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path) -> Iterator[None]:
    """Work in a folder of the test; afterwards no process is left, and no signal handler is changed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.chdir(tmp_path)
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers, family = [signal.getsignal(number) for number in numbers], set(psutil.Process().children(recursive=True))
    yield
    assert [signal.getsignal(number) for number in numbers] == handlers
    all_gone([one for one in psutil.Process().children(recursive=True) if one not in family], seconds=5)


def test_a_campaign_finds_explains_and_reduces(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lines: list[str] = []
    result = miscompile.fuzz(TOY, tests=150, out=tmp_path / "out", progress=lines.append, **QUICK)
    assert (result.tests, result.targets, result.seed) == (150, (TOY,), 0)
    assert 0 < result.judged <= result.tests
    assert capfd.readouterr() == ("", ""), "a library prints nothing"
    assert any(line.startswith("found wrong-") for line in lines)
    assert len(result) == len(list(result)) == 1
    (finding,) = result
    assert (finding.status, finding.kind, finding.culprits) == ("confirmed", "wrong", ("OperandOrdering",))
    assert [node.op_type for node in finding.model.graph.node] == ["Sub"]
    assert all(isinstance(value, np.ndarray) for value in finding.inputs.values())
    assert "import" in finding.script
    assert "OperandOrdering" in finding.issue
    assert finding.folder.parent == tmp_path / "out" / "findings"
    assert miscompile.load_finding(tmp_path / "out", finding.identifier) == finding
    why = miscompile.explain(finding)
    assert why.culprits == finding.culprits
    assert why.script == finding.script
    assert "wrong values" in why.summary
    assert any(row.works for row in why.boundary)

    with Store.open(tmp_path / "out") as store:
        store.update(replace(store.load(finding.identifier), status="pending"))
    with pytest.raises(miscompile.UsageError, match="is not examined yet"):
        miscompile.explain(miscompile.load_finding(tmp_path / "out", finding.identifier))
    reduced = miscompile.reduce(finding, time=20)
    assert [node.op_type for node in reduced.model.graph.node] == ["Sub"]
    assert miscompile.load_finding(tmp_path / "out", finding.identifier).status == "confirmed"

    again = miscompile.fuzz(TOY, tests=10, out=tmp_path / "out", resume=True, workers=1)
    assert again.tests == 160
    assert again.seed == 0


def test_a_model_is_explained_without_a_folder(tmp_path: Path) -> None:
    why = miscompile.explain(BROKEN, TOY, inputs=[np.arange(8, dtype=np.float32).reshape(2, 4)])
    assert (why.culprits, why.status, why.rule) == (("OperandOrdering",), "confirmed", "exact")
    assert [node.op_type for node in why.model.graph.node] == ["Sub"]
    with pytest.raises(miscompile.UsageError, match="3 tests of the model show nothing"):
        miscompile.reduce(BROKEN, "toy", tests=3)
    assert list(tmp_path.iterdir()) == []


def test_check_tests_a_model_in_memory_from_a_thread() -> None:
    found: list[miscompile.CampaignResult] = []
    run = threading.Thread(
        target=lambda: found.append(miscompile.check(BROKEN, TOY, tests=12, slices=False, workers=1, seed=1))
    )
    run.start()
    run.join()
    (result,) = found
    assert [one.culprits for one in result] == [("OperandOrdering",)]
    assert result.out == Path("miscompile-out")


@pytest.mark.compiler
def test_check_a_small_model_on_a_real_compiler(tmp_path: Path) -> None:
    result = miscompile.check(BROKEN.SerializeToString(), tests=10, slices=False, workers=1, out=tmp_path / "out")
    assert list(result) == []
    assert result.judged > 0
    assert "onnxruntime" in result.versions
    assert (tmp_path / "out" / "summary.json").is_file()


def test_silence_about_nothing_is_an_error(tmp_path: Path) -> None:
    foreign = parser.parse_model("""
        <ir_version: 8, opset_import: ["": 17, "mine": 1]> g (float[2] x) => (float[2] y) { y = mine.Odd (x) }
    """)
    with pytest.raises(miscompile.NothingTested, match="none of 2 tests"):
        miscompile.explain(foreign, "toy", tests=2)
    with pytest.raises(miscompile.NothingTested, match="toy: "):
        miscompile.check(foreign, "toy", tests=2, slices=False, workers=1, out=tmp_path / "out")


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: miscompile.fuzz("nonsense"), miscompile.UsageError, "there is no target 'nonsense'"),
        (lambda: miscompile.fuzz("toy", tests=0), miscompile.UsageError, "at least one test"),
        (lambda: miscompile.fuzz("toy", ops=["Nonsense"]), miscompile.UsageError, "there is no operator 'Nonsense'"),
        (lambda: miscompile.fuzz("toy", preset="none"), miscompile.UsageError, "preset"),
        (lambda: miscompile.fuzz([]), miscompile.UsageError, "name a target"),
        (lambda: miscompile.check(b"no model", "toy"), miscompile.ModelError, "model"),
        (lambda: miscompile.check("none.onnx", "toy"), miscompile.ModelError, "none.onnx"),
        (lambda: miscompile.compare([0.0], [1.0], BROKEN, target="nonsense"), miscompile.UsageError, "nonsense"),
    ],
)
def test_calls_that_cannot_work(call: Any, error: type[Exception], text: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=text):
        call()
    assert list(tmp_path.iterdir()) == []


def test_a_missing_compiler_has_an_error_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("miscompile.environments.resolve.installed", lambda name: None)
    monkeypatch.setattr("miscompile.targets.registry.installed", lambda name: None)
    with pytest.raises(miscompile.MissingCompilerError, match="target openvino needs openvino, not installed here"):
        miscompile.fuzz("openvino", tests=1)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_exception_of_the_callback_stops_cleanly(error: type[BaseException], tmp_path: Path) -> None:
    def stop(line: str) -> None:
        if "tests" in line:
            raise error

    with pytest.raises(error):
        miscompile.fuzz(TOY, out=tmp_path / "out", progress=stop, **QUICK)
    assert holds_campaign(tmp_path / "out")
    assert (tmp_path / "out" / "summary.json").is_file()


def test_ctrl_c_in_a_script_without_main_guard(tmp_path: Path) -> None:
    script = tmp_path / "nightly.py"
    script.write_text(
        f"import miscompile\nmiscompile.fuzz({TOY!r}, out='out', workers=1, opset=21,\n"
        "    progress=lambda line: print(line, flush=True))\n"
    )
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if "valid" in line and " 0 tests" not in line:
            break
    family = psutil.Process(process.pid).children(recursive=True)
    assert family
    os.kill(process.pid, signal.SIGINT)
    begin = time.monotonic()
    _, errors = process.communicate(timeout=120)
    assert errors.rstrip().endswith("KeyboardInterrupt"), errors
    assert process.returncode == -signal.SIGINT
    assert time.monotonic() - begin < 100
    all_gone(family)
    assert (tmp_path / "out" / "summary.json").is_file()


def model_of(types: str, body: str, results: str) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 9, opset_import: ["": 19]> g ({types}) => ({results}) {{ {body} }}')


@pytest.mark.compiler
@pytest.mark.parametrize(
    ("name", "code", "dtype"),
    [
        ("float16", 10, np.float16), ("bfloat16", 16, ml_dtypes.bfloat16),
        ("float8e4m3fn", 17, ml_dtypes.float8_e4m3fn), ("float8e5m2", 19, ml_dtypes.float8_e5m2),
    ],
)  # fmt: skip
def test_small_floats_are_compared_on_a_real_compiler(name: str, code: int, dtype: Any) -> None:
    model = model_of("float[4] x", f"d = Mul (x, x)  y = Cast <to = {code}> (d)", f"{name}[4] y")
    x = np.array([1.3, 2.7, 3.1, 0.5], np.float32)
    right = (x * x).astype(dtype)
    far = right.copy()
    far[1] = dtype(20)
    found = miscompile.compare([far], [right], model, [x])
    assert found.verdict == "wrong", found.why
    np.testing.assert_array_equal(found["y"].wrong, [False, True, False, False])


@pytest.mark.compiler
def test_rounding_and_undefined_behaviour_on_a_real_compiler() -> None:
    model = model_of("float[2,64] x, float[64,3] w", "a = MatMul (x, w)  y = Exp (a)", "float[2,3] y")
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 64), np.float32), rng.standard_normal((64, 3), np.float32)
    right = np.exp(x.astype(np.float64) @ w).astype(np.float32)
    assert miscompile.compare([np.exp(x @ w)], [right], model, [x, w]).ok
    assert miscompile.compare([right * np.float32(1.001)], [right], model, [x, w]).verdict == "wrong"
    division = model_of("int32[2] x, int32[2] w", "y = Div (x, w)", "int32[2] y")
    found = miscompile.compare([[0, 1]], [[7, 1]], division, [[3, 3], [0, 2]])
    assert (found.verdict, "undefined behaviour" in found.why) == ("undecided", True)
