"""ncnn as a target: the contract, networks against another runtime, and scripts."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from miscompile.core.case import Case
from miscompile.core.outcome import Outcome, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Evidence
from miscompile.execution.conformance import check_target
from miscompile.execution.pool import LocalPool
from miscompile.graph.emit import to_program
from miscompile.graph.read import read
from miscompile.targets.ncnn.names import ACTIVATIONS, PASSES
from miscompile.targets.ncnn.tensors import emit, given, same
from miscompile.triage.script import write_script

needs_ncnn = pytest.mark.skipif(importlib.util.find_spec("ncnn") is None, reason="ncnn is not installed")

HEAD = '<ir_version: 8, opset_import: ["" : 18]>'

MODELS = {
    "layers": """g (float[1,2,6,6] x, float[4,2,3,3] w, float[4] b) => (float[1,4,3,3] y, float[1,4,1,1] z) {
        c = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, w, b)  r = Relu(c)
        y = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(r)  z = GlobalAveragePool(r) }""",
    "fused": """g (float[1,3,9,9] x) => (float[1,4,9,9] y, float[1,4,9,9] z) <float[4,3,1,1] w = {
        1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, -6}, float a = {-1}, float b = {2}> {
        c = Conv(x, w)  y = Relu(c)  d = Conv(x, w)  z = Clip(d, a, b) }""",
    "grouped": "g (float[1,4,7] x, float[6,2,3] w) => (float[1,6,5] y) { y = Conv<group = 2>(x, w) }",
    "batch": """g (float[2,3,4,4] x) => (float[2,3,2,2] y, float[2,1,4,4] z) <int64[1] a = {1}> {
        y = AveragePool<kernel_shape = [2, 2], strides = [2, 2]>(x)  z = ReduceMax(x, a) }""",
    "products": """g (float[2,3] x, float[4,3] w, float[4] b) => (float[2,4] y, float[2] z)
        <float[4] v = {1, 2, 3, 4}> {
        y = Gemm<transB = 1, alpha = 0.5>(x, w, b)  z = MatMul(y, v) }""",
    "slices": """g (float[4,5] x) => (float[2,5] y, float[4,3] z) <int64[1] s = {-1}, int64[1] e = {-3},
        int64[1] a = {0}, int64[1] t = {-1}, int64[1] u = {1}, int64[1] v = {4}> {
        y = Slice(x, s, e, a, t)  z = Slice(x, u, v, u) }""",
    "readers": """g (float[1,3,4] x) => (float[1,3,4] y, float[1,4,3] z, float[1,3,4] x2, float[1,3,4] y2) {
        y = Exp(x)  z = Transpose<perm = [0, 2, 1]>(y)  x2 = Identity(x)  y2 = Add(y, x) }""",
    "broadcast": """g (float[3,1,4] x, float[4] v) => (float[3,4,4] y, float[3,1,4] z)
        <float[1,4,1] c = {1, 2, 3, 4}, float s = {3}> { y = Sub(x, c)  d = Add(x, v)  z = Sub(s, d) }""",
    "softmax": "g (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax<axis = 1>(x) }",
}


def case(text: str) -> Case:
    program = to_program(read(onnx.parser.parse_model(HEAD + text).SerializeToString()))
    numbers = np.random.default_rng(0)
    feed = tuple(tensor(numbers.standard_normal(port.shape), port.dtype) for port in program.inputs)  # type: ignore[arg-type]
    return Case(program, (feed,))


def outcomes(target: str, item: Case, *builds: Build) -> list[Outcome]:
    with LocalPool(target) as pool:
        return pool.run([Run(item, target, build) for build in builds])


@needs_ncnn
@pytest.mark.compiler
@pytest.mark.process
def test_the_target_keeps_the_contract() -> None:
    check_target("ncnn", LocalPool, empty=False)  # ncnn has no blobs without elements


@needs_ncnn
@pytest.mark.compiler
@pytest.mark.process
@pytest.mark.parametrize("name", MODELS)
def test_all_options_agree_with_another_runtime(name: str) -> None:
    item = case(MODELS[name])
    builds = (Build("off"), Build("full"), Build("full", frozenset(PASSES)))
    (wanted,) = outcomes("onnxruntime", item, Build("off"))
    assert isinstance(wanted, Values)
    for found in outcomes("ncnn", item, *builds):
        assert isinstance(found, Values), found
        for mine, theirs in zip(found.results[0], wanted.results[0], strict=True):
            assert mine is not None
            assert theirs is not None
            np.testing.assert_allclose(mine.array, theirs.array, rtol=1e-5, atol=1e-5)
            assert mine.dtype == theirs.dtype


@needs_ncnn
@pytest.mark.compiler
@pytest.mark.process
@pytest.mark.parametrize("culprits", [(), (ACTIVATIONS,)])
def test_a_script_runs_and_says_that_there_is_no_bug(culprits: tuple[str, ...], tmp_path: Path) -> None:
    item = case(MODELS["layers"])
    faulty, right = Run(item, "ncnn", Build("full")), Run(item, "ncnn", Build("off"))
    details = {"allowed": 1e-3, "difference": 1.0, "output": 0, "feed": 0}
    evidence = Evidence("wrong", "fixed", "a line", faulty, right, "y", details)
    path = tmp_path / "bug.py"
    path.write_text(write_script(item, evidence, culprits=culprits, versions={"ncnn": "2.99"}))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the bug does not show" in done.stdout


@needs_ncnn
def test_an_activation_becomes_a_parameter_unless_its_operand_has_another_reader() -> None:
    from miscompile.targets.ncnn.runner import network_of

    x = given((1, 2, 5, 5))
    convolved = emit("Convolution", [x.blob], (1, 1, 4, 4), {0: 1, 1: 2, 6: 8}, [(np.ones(8), 0)])
    active = same("ReLU", convolved, {0: 0.0})
    alone, plain = (network_of([x], [active], fused)[0] for fused in (True, False))
    both = network_of([x], [active, convolved], True)[0]
    assert " 9=1" in alone
    assert "ReLU" not in alone
    assert "ReLU" in plain
    assert "ReLU" in both
    assert "Split" in both


@needs_ncnn
def test_numbers_that_the_format_cannot_hold_are_refused() -> None:
    from miscompile.targets.ncnn.runner import words_of

    assert words_of({0: 3, 1: 0.5, 9: [1, 2]}) == "0=3 1=5.00000000e-01 -23309=2,1,2"
    with pytest.raises(NotImplementedError, match="not finite"):
        words_of({0: float("inf")})
