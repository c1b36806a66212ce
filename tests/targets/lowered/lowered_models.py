"""Models and checks for targets that do not read ONNX: their lowered programs against another runtime, and scripts."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx

from miscompile.core.case import Case
from miscompile.core.outcome import Outcome, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Evidence
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool
from miscompile.graph.emit import to_program
from miscompile.graph.read import read
from miscompile.triage.script import write_script

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
"""Models of each family of layers, in onnx's textual form without its head."""


def case(text: str) -> Case:
    """Return a model with one feed of normally distributed numbers."""
    program = to_program(read(onnx.parser.parse_model(HEAD + text).SerializeToString()))
    numbers = np.random.default_rng(0)
    feed = tuple(tensor(numbers.standard_normal(port.shape), port.dtype) for port in program.inputs)  # type: ignore[arg-type]
    return Case(program, (feed,))


def outcomes(target: str, item: Case, builds: Sequence[Build]) -> list[Outcome]:
    """Run a case under builds of a target; slow compilers get two minutes for each."""
    with LocalPool(target, limits=Limits(seconds=120)) as pool:
        return pool.run([Run(item, target, build) for build in builds])


def assert_agreement(target: str, text: str, builds: Sequence[Build]) -> None:
    """Assert that all builds compute what ONNX Runtime computes without optimisation, in the same element types."""
    item = case(text)
    (wanted,) = outcomes("onnxruntime", item, [Build("off")])
    assert isinstance(wanted, Values)
    for found in outcomes(target, item, builds):
        assert isinstance(found, Values), found
        for mine, theirs in zip(found.results[0], wanted.results[0], strict=True):
            assert mine is not None
            assert theirs is not None
            np.testing.assert_allclose(mine.array, theirs.array, rtol=1e-5, atol=1e-5)
            assert mine.dtype == theirs.dtype


def assert_script_shows_nothing(target: str, culprits: tuple[str, ...], folder: Path) -> None:
    """Assert that the script of a finding that is none runs both builds, and says that the bug does not show."""
    item = case(MODELS["layers"])
    faulty, right = Run(item, target, Build("full")), Run(item, target, Build("off"))
    details = {"allowed": 1e-3, "difference": 1.0, "output": 0, "feed": 0}
    evidence = Evidence("wrong", "fixed", "a line", faulty, right, "y", details)
    path = folder / "bug.py"
    path.write_text(write_script(item, evidence, culprits=culprits, versions={target: "9.9"}))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the bug does not show" in done.stdout
