"""Inductor as a target: the contract, passes that fire and can be switched off, what it refuses, and scripts."""

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

from miscompile.core.case import Case
from miscompile.core.outcome import Outcome, Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Evidence
from miscompile.execution.conformance import check_target
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool
from miscompile.graph.emit import to_program
from miscompile.graph.read import read
from miscompile.targets.inductor.about import ABOUT
from miscompile.targets.inductor.folders import KernelFolders
from miscompile.targets.inductor.settings import LEVELS, SETTINGS, settings_of
from miscompile.triage.script import write_script

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler")

HEAD = '<ir_version: 8, opset_import: ["" : 18]>'

FIRING = {
    "pointless_permute_pair": """g (float[2,3,4] x) => (float[2,3,4] y) {
        a = Transpose<perm = [0, 2, 1]>(x)  b = Transpose<perm = [0, 2, 1]>(a)  y = Exp(b) }""",
    "addmm": "g (float[2,3] x, float[3,4] w, float[4] b) => (float[2,4] y) { m = MatMul(x, w)  y = Add(m, b) }",
    "remove_noop_ops": """g (float[2,3] x) => (float[2,3] y) <int64[1] s = {0}, int64[1] e = {9}> {
        a = Slice(x, s, e)  y = Exp(a) }""",
    "constant_fold_uniform_value": """g (float[2,3] x) => (float[2,3] y) <int64[2] s = {2, 3}> {
        one = ConstantOfShape<value = float[1] {1.0}>(s)  a = Mul(x, one)  y = Exp(a) }""",
    "mul_softmax_pattern": "g (float[4,8] x) => (float[4,8] y) <float s = {3.0}> { a = Mul(x, s)  y = Softmax(a) }",
    "div_softmax_pattern": "g (float[4,8] x) => (float[4,8] y) <float s = {3.0}> { a = Div(x, s)  y = Softmax(a) }",
    "pointless_view_pair": """g (float[2,3] x) => (float[2,3] y) <int64[1] f = {6}, int64[2] s = {2, 3}> {
        a = Reshape(x, f)  b = Reshape(a, s)  y = Exp(b) }""",
    "bmm_to_mm": "g (float[1,3,4] x, float[1,4,5] w) => (float[1,3,5] y) { y = MatMul(x, w) }",
    "pointless_cumsum_replacement": """g (float[2,3] x) => (float[2,3] y) <int64[2] s = {2, 3}, int64 axis = {1}> {
        one = ConstantOfShape<value = float[1] {1.0}>(s)  c = CumSum(one, axis)  y = Add(x, c) }""",
    "pointless_convert": """g (float16[2,3] x) => (float16[2,3] y) {
        a = Cast<to = 1>(x)  b = Cast<to = 11>(a)  y = Cast<to = 10>(b) }""",
    "splitwithsizes_cat_replace": """g (float[2,6] x) => (float[2,6] y) <int64[2] s = {2, 4}> {
        a, b = Split<axis = 1>(x, s)  c = Concat<axis = 1>(a, b)  y = Exp(c) }""",
    "cat_splitwithsizes_replace": """g (float[2,2] x, float[2,4] z) => (float[2,2] y, float[2,4] v)
        <int64[2] s = {2, 4}> {
        c = Concat<axis = 1>(x, z)  a, b = Split<axis = 1>(c, s)  y = Exp(a)  v = Exp(b) }""",
    "cat_slice_cat": """g (float[2,2] x, float[2,4] z) => (float[2,9] y)
        <int64[1] s = {0}, int64[1] e = {3}, int64[1] ax = {1}> {
        c = Concat<axis = 1>(x, z)  d = Slice(c, s, e, ax)  y = Concat<axis = 1>(c, d) }""",
    "fuse_attention": """g (float[2,3,4,8] q, float[2,3,4,8] k, float[2,3,4,8] v) => (float[2,3,4,8] y)
        <float s = {0.5}> {
        t = Transpose<perm = [0, 1, 3, 2]>(k)  a = MatMul(q, t)  b = Mul(a, s)  c = Softmax(b)  y = MatMul(c, v) }""",
    "scheduler_fusion": "g (float[2,3] x) => (float[2,3] y, float[2,3] z) { y = Exp(x)  z = Neg(x) }",
    "vectorization": "g (float[4,32] x) => (float[4,32] y) { y = Exp(x) }",
    "horizontal_fusion": "g (float[2,3] x) => (float[2,3] y, float[2,3] z) { y = Exp(x)  z = Neg(x) }",
    "loop_tail_vectorization": "g (float[4,13] x) => (float[4,13] y) { y = Exp(x) }",
    "tiling_heuristics": """g (float[8,4] x) => (float[8,1] y) <int64[1] a = {1}> { y = ReduceSum(x, a) }""",
    "unroll_reductions": """g (float[8,4] x) => (float[8,1] y) <int64[1] a = {1}> { y = ReduceSum(x, a) }""",
    "pick_loop_orders": """g (float[8,16] x, float[16,8] z) => (float[16,8] y) {
        t = Transpose<perm = [1, 0]>(x)  y = Add(t, z) }""",
    "layout_optimization": """g (float[1,3,8,8] x, float[4,3,3,3] w) => (float[1,4,6,6] y) {
        c = Conv(x, w)  y = Relu(c) }""",
    "reorder_for_peak_memory": """g (float[40,30] x, float[30,40] w) => (float[40,40] y, float[40,40] z, float[1,1] u) {
        m = MatMul(x, w)  n = MatMul(m, m)  y = Exp(n)  a = ReduceSum(m)  b = MatMul(m, n)  z = Neg(b)  u = Exp(a) }""",
    "inplace_buffers": "g (float[4,3] x, float[3,4] w) => (float[4,4] y) { m = MatMul(x, w)  y = Exp(m) }",
}
"""For each pass a model that it changes."""


def case(text: str) -> Case:
    program = to_program(read(onnx.parser.parse_model(HEAD + text).SerializeToString()))
    numbers = np.random.default_rng(0)
    feed = tuple(tensor(numbers.standard_normal(port.shape), port.dtype) for port in program.inputs)  # type: ignore[arg-type]
    return Case(program, (feed,))


@pytest.fixture(scope="module")
def pool() -> Iterator[LocalPool]:
    with LocalPool("inductor", limits=Limits(seconds=60)) as opened:
        yield opened


def run(pool: LocalPool, item: Case, *builds: Build) -> list[Outcome]:
    return pool.run([Run(item, "inductor", build) for build in builds])


@needs_torch
@needs_compiler
@pytest.mark.compiler
@pytest.mark.process
def test_the_target_keeps_the_contract() -> None:
    """Each program compiles for a second, so few passes are switched off alone here; others have tests of their own."""
    check_target("inductor", lambda target: LocalPool(target, limits=Limits(seconds=60)), alone=6)


@needs_torch
@needs_compiler
@pytest.mark.compiler
@pytest.mark.process
@pytest.mark.parametrize("name", FIRING)
def test_a_pass_is_seen_and_can_be_switched_off(name: str, pool: LocalPool) -> None:
    item = case(FIRING[name])
    off = Build(disabled=frozenset({name}), observe=True)
    right, seen, without = run(pool, item, Build("off"), Build(observe=True), off)
    assert isinstance(right, Values)
    assert name in seen.observations.passes
    assert name not in without.observations.passes
    for outcome in (seen, without):
        assert isinstance(outcome, Values)
        for found, wanted in zip(outcome.results[0], right.results[0], strict=True):
            assert found is not None
            assert wanted is not None
            np.testing.assert_allclose(found.array, wanted.array, rtol=2e-3, atol=1e-5)


@needs_torch
@needs_compiler
@pytest.mark.compiler
@pytest.mark.process
@pytest.mark.parametrize("level", ABOUT.levels)
def test_every_level_gives_the_same(level: str, pool: LocalPool) -> None:
    item = case("g (float[3,4] x) => (float[3,4] y) { a = Relu(x)  b = Abs(x)  y = Sub(a, b) }")
    right, outcome = run(pool, item, Build("off"), Build(level))
    assert isinstance(right, Values)
    assert isinstance(outcome, Values)
    found, wanted = outcome.results[0][0], right.results[0][0]
    assert found is not None
    assert wanted is not None
    assert found.same(wanted)


@needs_torch
@needs_compiler
@pytest.mark.compiler
@pytest.mark.process
@pytest.mark.parametrize(
    "text",
    [
        "g (uint16[2] x) => (uint16[2] y) { y = Add(x, x) }",
        "g (float16[2,2] x) => (float16 y) { y = Det(x) }",
        "g (float[2] x, int64[1] s) => (float[1,2] y) { y = Reshape(x, s) }",
        "g (string[2] x) => (string[2] y) { y = Identity(x) }",
    ],
)
def test_what_torch_lacks_is_unsupported(text: str, pool: LocalPool) -> None:
    program = to_program(read(onnx.parser.parse_model(HEAD + text).SerializeToString()))
    feed = tuple(
        tensor(np.array(["a", "b"], object) if port.dtype == "string" else np.ones(port.shape), port.dtype)  # type: ignore[arg-type]
        for port in program.inputs
    )
    (outcome,) = run(pool, Case(program, (feed,)), Build("off"))
    assert isinstance(outcome, Unsupported), outcome


def test_settings_that_a_version_lacks_are_left_out() -> None:
    assert settings_of("full", SETTINGS, lambda name: name == "epilogue_fusion") == {"epilogue_fusion": False}
    assert settings_of("nopasses", (), lambda _: True) == LEVELS["nopasses"]
    assert set(SETTINGS) <= set(ABOUT.passes)


def test_folders_of_dead_processes_are_removed(tmp_path: Path) -> None:
    folders = KernelFolders(str(tmp_path))
    mine = Path(folders.enter(anew=False))
    (mine / "kernel.so").touch()
    dead = mine.parent.parent / "999999999"
    dead.mkdir()
    assert Path(folders.enter(anew=False), "kernel.so").exists()
    assert not list(Path(folders.enter(anew=True)).iterdir())
    again = KernelFolders(str(tmp_path))
    assert not dead.exists()
    again.remove()
    assert not mine.exists()


def test_no_compiler_no_target(tmp_path: Path) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    code = (
        "from miscompile.targets.inductor.adapter import Inductor\n"
        "from miscompile.base.errors import UsageError\n"
        "try: Inductor()\n"
        "except UsageError as error: print(error)"
    )
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert "needs a C++ compiler" in done.stdout, done.stderr


@needs_torch
@needs_compiler
@pytest.mark.compiler
@pytest.mark.process
@pytest.mark.parametrize("culprits", [(), ("addmm",)])
def test_a_script_runs_and_says_that_there_is_no_bug(culprits: tuple[str, ...], tmp_path: Path) -> None:
    item = case(FIRING["addmm"])
    disabled = frozenset(ABOUT.passes) - set(culprits) if culprits else frozenset[str]()
    faulty, right = Run(item, "inductor", Build("full", disabled)), Run(item, "inductor", Build("off"))
    details = {"allowed": 1e-3, "difference": 1.0, "output": 0, "feed": 0}
    evidence = Evidence("wrong", "fixed", "a line", faulty, right, "y", details)
    path = tmp_path / "bug.py"
    path.write_text(write_script(item, evidence, culprits=culprits, versions={"torch": "1.99.0"}))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the bug does not show" in done.stdout
