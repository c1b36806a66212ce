"""Passes of XLA: on which programs they fire, and that they can be switched off; what is observed leaves no files."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import pytest

from miscompile.base.dtypes import BY_CODE
from miscompile.core.case import Case, Port, Program
from miscompile.core.outcome import Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor, tensor
from miscompile.execution.pool import LocalPool
from miscompile.targets.xla.about import ABOUT
from miscompile.targets.xla.dumps import changed

pytestmark = [pytest.mark.compiler, pytest.mark.process]
needs_jax = pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed here")

HEAD = '<ir_version: 8, opset_import: ["" : 18]> '
RESHAPES = """g (float[4,6] x, float[4,6] z) => (float[24] y) <int64[1] s = {24}> {
    a = Reshape(x, s) b = Reshape(z, s) y = Add(a, b) }"""
CONVOLUTION = "g (float[1,2,5,5] x, float[3,2,3,3] w) => (float[1,3,3,3] y) { y = Conv(x, w) }"
LARGEST = """g (float[4,6] x) => (float[4,2] y) <int64[1] k = {2}> { y, i = TopK(x, k) }"""
LEAST = """g (float[4,6] x) => (float[4,2] y) <int64[1] k = {2}> { y, i = TopK<largest = 0>(x, k) }"""
RECURRENT = """g (float[4,1,3] x, float[1,6,3] w, float[1,6,2] r) => (float[4,1,1,2] y) {
    y = GRU<hidden_size = 2>(x, w, r) }"""
VECTOR = "g (float[64,64] x, float[64] v) => (float[64] y) { y = MatMul(x, v) }"
SUMS = "g (float[40] x) => (float[40] y) <int64 a = {0}> { y = CumSum(x, a) }"
SOFTMAX = "g (float[8,8] x) => (float[8,8] y) { a = Softmax(x) y = MatMul(a, x) }"

FIRE = {
    "algsimp": LARGEST,
    "fusion": RESHAPES,
    "reshape-mover": RESHAPES,
    "cse": LEAST,
    "dce": LARGEST,
    "topk-rewriter": LARGEST,
    "convolution-canonicalization": CONVOLUTION,
    "constant_folding": RECURRENT,
    "small-while-loop-hoisting": RECURRENT,
    "while-loop-trip-count-annotator": RECURRENT,
    "gemv-rewriter": VECTOR,
    "reshape-decomposer": VECTOR,
    "reduce-window-rewriter": SUMS,
    "dot-library-rewriter": SOFTMAX,
}


def case_of(text: str) -> Case:
    model = onnx.parser.parse_model(HEAD + text)
    fixed = {constant.name for constant in model.graph.initializer}
    given = [info for info in model.graph.input if info.name not in fixed]
    inputs = tuple(map(_port, given))
    rng = np.random.default_rng(0)
    feed = tuple(
        tensor(np.asarray(rng.normal(size=_sizes(info))), port.dtype) for info, port in zip(given, inputs, strict=True)
    )
    program = Program("onnx", model.SerializeToString(), inputs, tuple(map(_port, model.graph.output)))
    return Case(program, (feed,))


def _port(info: onnx.ValueInfoProto) -> Port:
    kind = info.type.tensor_type
    return Port(info.name, BY_CODE[kind.elem_type].name, _sizes(info))


def _sizes(info: onnx.ValueInfoProto) -> tuple[int, ...]:
    return tuple(size.dim_value for size in info.type.tensor_type.shape.dim)


@pytest.fixture(scope="module")
def pool() -> Iterator[LocalPool]:
    with LocalPool("xla") as opened:
        yield opened


@needs_jax
@pytest.mark.parametrize("name", FIRE)
def test_a_pass_fires_unless_it_is_off(name: str, pool: LocalPool) -> None:
    case = case_of(FIRE[name])
    builds = Build("full", observe=True), Build("full", frozenset({name}), observe=True), Build("off")
    fired, without, off = pool.run([Run(case, "xla", build) for build in builds])
    assert name in fired.observations.passes
    assert name not in without.observations.passes
    wanted = first(off)
    for outcome in (fired, without):
        assert np.allclose(first(outcome).array, wanted.array, 1e-5, 1e-5)


def first(outcome: object) -> Tensor:
    assert isinstance(outcome, Values), outcome
    found = outcome.results[0][0]
    assert found is not None
    return found


@needs_jax
def test_observing_leaves_no_files(pool: LocalPool) -> None:
    before = set(os.listdir("/dev/shm"))
    pool.run([Run(case_of(RESHAPES), "xla", Build("full", observe=True))])
    assert not {name for name in set(os.listdir("/dev/shm")) - before if name.startswith("miscompile-xla-")}


def test_only_passes_that_change_the_text_have_changed_the_module(tmp_path: Path) -> None:
    steps = ("outer.after_pipeline-start", "one"), ("inner.after_algsimp", "two"), ("inner.after_dce", "two")
    others = ("inner.after_cse", "three"), ("outer.after_layout-assignment", "four"), ("outer.after_fusion", "four")
    for number, (name, text) in enumerate((*steps, *others)):
        (tmp_path / f"module_0001.jit__lambda.{number:04}.{name}.before_next.txt").write_text(text)
    (tmp_path / "module_0001.jit__lambda.debug_options").write_text("")
    assert changed(tmp_path, frozenset(ABOUT.passes)) == ("algsimp", "cse")
