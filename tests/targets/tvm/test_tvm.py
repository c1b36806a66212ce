"""TVM as a target: the contract, passes that fire and stay off, element types, what it refuses, and its scripts."""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from miscompile.base.dtypes import BY_CODE
from miscompile.base.specs import parse_spec, stored_spec
from miscompile.core.case import Case, Feed, Port, Program
from miscompile.core.outcome import Outcome, Raised, Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor, tensor
from miscompile.core.verdict import Evidence
from miscompile.execution.conformance import check_target
from miscompile.execution.pool import LocalPool
from miscompile.targets.known import known
from miscompile.targets.tvm.about import ABOUT, prepare
from miscompile.triage.script import write_script

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(importlib.util.find_spec("tvm") is None, reason="apache-tvm is not installed"),
]

OFF, FULL, OBSERVED = Build("off"), Build("full"), Build("full", observe=True)


@pytest.fixture(scope="module")
def pool() -> Iterator[LocalPool]:
    with LocalPool("tvm") as opened:
        yield opened


def case(graph: str, feed: Feed | None = None, opset: int = 17) -> Case:
    """A case from the text of a graph; without `feed` its inputs are small integers."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> {graph}')
    given = {initializer.name for initializer in model.graph.initializer}
    inputs = tuple(port(value) for value in model.graph.input if value.name not in given)
    outputs = tuple(port(value) for value in model.graph.output)
    program = Program("onnx", model.SerializeToString(), inputs, outputs)
    return Case(program, (feed if feed is not None else tuple(map(small, inputs)),))


def port(value: onnx.ValueInfoProto) -> Port:
    kind = value.type.tensor_type
    return Port(value.name, BY_CODE[kind.elem_type].name, tuple(dim.dim_value for dim in kind.shape.dim))


def small(given: Port) -> Tensor:
    assert given.shape is not None
    sizes = [size for size in given.shape if isinstance(size, int)]
    return tensor((np.arange(np.prod(sizes, dtype=int)) % 7 - 3).reshape(sizes), given.dtype)


def run(pool: LocalPool, item: Case, *builds: Build) -> list[Outcome]:
    return pool.run([Run(item, "tvm", build) for build in builds or (OFF, FULL)])


def values(outcome: Outcome) -> tuple[Tensor, ...]:
    assert isinstance(outcome, Values), outcome
    found = [output for output in outcome.results[0] if output is not None]
    assert len(found) == len(outcome.results[0])
    return tuple(found)


def test_the_target_keeps_the_contract() -> None:
    check_target("tvm", LocalPool)


def test_this_process_never_imports_the_compiler(pool: LocalPool) -> None:
    run(pool, case("g (float[2] x) => (float[2] y) { y = Relu(x) }"))
    assert not {"tvm", "tvm_ffi"} & set(sys.modules)


KERNEL = "{" + ",".join(str(i % 5 - 2) for i in range(72)) + "}"
CONVOLUTION = (
    f"g (float[1,2,6,6] x) => (float[1,4,6,6] y) <float[4,2,3,3] k = {KERNEL}> {{ y = Conv <pads = [1,1,1,1]> (x, k) }}"
)

FIRING = {
    "FoldConstant": "g (float[3] x) => (float[3] y) <float[3] w = {-1,2,3}> { t = Relu(w) y = Mul(x, t) }",
    "RemoveRedundantReshape": "g (float[2,6] x) => (float[4,3] y) <int64[2] a = {3,4}, int64[2] b = {4,3}> "
    "{ r = Reshape(x, a) y = Reshape(r, b) }",
    "EliminateCommonSubexpr": "g (float[3] x, float[3] u) => (float[3] y) "
    "{ a = Add(x, u) b = Add(x, u) c = Exp(a) d = Exp(b) y = Sub(c, d) }",
    "AdjustMatmulOrder": "g (float[2,9] x, float[9,3] a, float[3,8] b) => (float[2,8] y) "
    "{ ab = MatMul(a, b) y = MatMul(x, ab) }",
    "ExpandMatmulOfSum": "g (float[2,3] x, float[3,4] a, float[3,4] b) => (float[2,4] y) "
    "{ s = Add(a, b) y = MatMul(x, s) }",
    "ReorderTakeAfterMatmul": "g (float[2,3] x, float[3,5] w) => (float[2,2] y) <int64[2] i = {4,1}> "
    "{ t = Gather <axis = 1> (w, i) y = MatMul(x, t) }",
    "CombineParallelMatmul": "g (float[2,3] x, float[3,4] a, float[3,5] b) => (float[2,4] y, float[2,5] z) "
    "{ y = MatMul(x, a) z = MatMul(x, b) }",
    "FuseTransposeMatmul": "g (float[2,3] x, float[4,3] w) => (float[2,4] y) "
    "{ t = Transpose <perm = [1,0]> (w) y = MatMul(x, t) }",
    "ConvertLayout": CONVOLUTION,
    "FoldBatchnormToConv2D": "g (float[1,2,6,6] x) => (float[1,4,6,6] y) "
    f"<float[4,2,3,3] k = {KERNEL}, float[4] s = {{1,2,1,2}}, float[4] b = {{1,0,3,1}}, "
    "float[4] m = {0,1,2,3}, float[4] v = {1,4,4,1}> "
    "{ c = Conv <pads = [1,1,1,1]> (x, k) n = BatchNormalization <epsilon = 0.0> (c, s, b, m, v) y = Relu(n) }",
    "DecomposeOps": "g (float[2,4] x, float[4] s, float[4] b, float[4] m) => (float[2,4] y) <float[4] v = {1,4,4,1}> "
    "{ y = BatchNormalization <epsilon = 0.0> (x, s, b, m, v) }",
    "DataflowInsertInPlaceCalls": "g (float[3] x, float[3] u) => (float[3] y) "
    "{ a = Add(x, u) b = Relu(a) c = Mul(b, b) y = Neg(c) }",
    "FuseOps": "g (float[3] x, float[3] u) => (float[3] y) { a = Add(x, u) y = Relu(a) }",
    "FuseTIR": "g (float[3] x, float[3] u) => (float[3] y) { a = Add(x, u) y = Relu(a) }",
    "RewriteDataflowReshape": "g (float[2,3] x) => (float[3,3] y) <int64[2] a = {3,2}> "
    "{ r = Reshape(x, a) y = MatMul(r, x) }",
    "StaticPlanBlockMemory": "g (float[3,3] x) => (float[3,3] y) { a = MatMul(x, x) y = MatMul(a, a) }",
    "KillAfterLastUse": "g (float[3,3] x) => (float[3,3] y) { a = MatMul(x, x) y = MatMul(a, a) }",
    "tirx.StorageRewrite": "g (float[3,4] x) => (float[3,4] y) { y = Softmax <axis = -1> (x) }",
    "tirx.CommonSubexprElim": CONVOLUTION,
}
"""For each of these passes a graph on which it fires."""


@pytest.mark.parametrize("name", FIRING)
def test_a_pass_fires_and_stays_off_when_told(name: str, pool: LocalPool) -> None:
    without = Build("full", frozenset({name}), observe=True)
    reference, with_it, without_it = run(pool, case(FIRING[name]), OFF, OBSERVED, without)
    assert name in with_it.observations.passes, with_it
    assert name not in without_it.observations.passes
    assert set(with_it.observations.passes) <= set(ABOUT.passes)
    for outcome in (with_it, without_it):
        for found, wanted in zip(values(outcome), values(reference), strict=True):
            assert np.allclose(found.array, wanted.array, rtol=1e-6, atol=0)


def test_wide_types_are_not_narrowed(pool: LocalPool) -> None:
    item = case(
        "g (int64[2] x, double[2] d, uint64[1] u) => (int64[2] y, double[2] e, uint64[1] v) "
        "<int64[1] big = {5000000000}, double[1] near = {1.0000000000001}> "
        "{ y = Add(x, big) e = Mul(d, near) v = Add(u, u) }",
        (tensor(np.array([1, -(2**40)])), tensor(np.array([1.0, 3.0])), tensor(np.array([2**62 + 1], np.uint64))),
    )
    for outcome in run(pool, item):
        whole, double, unsigned = values(outcome)
        assert whole.array.tolist() == [5000000001, 5000000000 - 2**40]
        assert double.array.tolist() == [1.0000000000001, 3.0 * 1.0000000000001]
        assert unsigned.array.tolist() == [2**63 + 2]


def test_a_shape_that_is_an_output_is_a_tensor(pool: LocalPool) -> None:
    (outcome,) = run(pool, case("g (float[2,3] x) => (int64[2] y) { y = Shape(x) }"), OFF)
    (found,) = values(outcome)
    assert found.same(tensor(np.array([2, 3], np.int64)))


@pytest.mark.parametrize("level", ABOUT.levels)
def test_sizes_of_zero_are_sizes_at_every_level(level: str, pool: LocalPool) -> None:
    item = case(
        "g (float[0,3] x, float[2,3] u) => (float[2,3] y, float[3,0] z) "
        "{ y = Concat <axis = 0> (x, u) z = Transpose <perm = [1,0]> (x) }"
    )
    (outcome,) = run(pool, item, Build(level))
    joined, turned = values(outcome)
    assert joined.same(item.feeds[0][1])
    assert turned.shape == (3, 0)


def test_brain_floats_are_fed_and_come_back(pool: LocalPool) -> None:
    value = tensor(np.array([1.5, -2.0, 96.0]), "bfloat16")
    for outcome in run(pool, case("g (bfloat16[3] x) => (bfloat16[3] y) { y = Neg(x) }", (value,))):
        assert values(outcome)[0].same(tensor(np.array([-1.5, 2.0, -96.0]), "bfloat16"))


def test_each_feed_has_its_own_results(pool: LocalPool) -> None:
    """What one run leaves in reused buffers, or writes in place, must not reach the next."""
    item = case(FIRING["DataflowInsertInPlaceCalls"])
    many = Case(item.program, (item.feeds[0], tuple(tensor(value.array + 9) for value in item.feeds[0]), item.feeds[0]))
    reference, outcome = run(pool, many)
    assert isinstance(reference, Values)
    assert isinstance(outcome, Values)
    for wanted, found in zip(reference.results, outcome.results, strict=True):
        assert wanted[0] is not None
        assert found[0] is not None
        assert wanted[0].same(found[0])


REFUSED = {
    "the importer lacks this operator": "g (float[2] x) => (float[2] y) { y = NoSuchOperator(x) }",
    "the importer says that it lacks this form of the operator": "g (float[4] x, int64[2] s) => "
    "(float[2] y, float[2] z) { y, z = Split <axis = 0> (x, s) }",
    "an operand that must be known when the model is imported": "g (float[4] x, int64[1] k) => "
    "(float[2] y, int64[2] i) { y, i = TopK (x, k) }",
    "reshaping to a shape that is known at run time only": "g (float[4] x, int64[2] s) => (float[2,2] y) "
    "{ y = Reshape(x, s) }",
    "the result of Shape is no tensor in Relax, and only some operators take it": "g (float[2,3] x) => (int64[2] y) "
    "{ s = Shape(x) y = Neg(s) }",
    "the importer takes no constants given as value_int, value_floats and the like": "g (float[2] x) => (float[2] y) "
    "{ c = Constant <value_float = 2.0> () y = Mul(x, c) }",
    "the importer lacks an optional output of this operator": "g (float[1,1,4] x) => (float[1,1,3] y, int64[1,1,3] i) "
    "{ y, i = MaxPool <kernel_shape = [2]> (x) }",
}
"""For the reasons in known.toml a model that is refused for it."""


@pytest.mark.parametrize("reason", REFUSED)
def test_what_it_says_when_it_refuses_is_known(reason: str, pool: LocalPool) -> None:
    item = case(REFUSED[reason], FEEDS.get(reason))
    for outcome in run(pool, item):
        assert isinstance(outcome, Unsupported), outcome
        kinds = ("OpNotImplemented", "ValueError", "AssertionError", "TypeError", "NotImplementedError")
        entry = next(filter(None, (known("tvm").rejection(kind, outcome.message) for kind in kinds)))
        assert entry.reason == reason, outcome.message


FEEDS: dict[str, Feed] = {
    reason: (small(Port("x", "float32", (4,))), tensor(np.array(words, np.int64)))
    for reason, words in {
        "the importer says that it lacks this form of the operator": [2, 2],
        "an operand that must be known when the model is imported": [2],
        "reshaping to a shape that is known at run time only": [2, 2],
    }.items()
}


def test_a_failed_assertion_is_no_refusal() -> None:
    assert known("tvm").rejection("InternalError", "Check failed: (a == b) is false: layouts are not supported") is None
    assert known("tvm").rejection("TypeError", "Cannot treat type `ir.GenericConst` as type `ir.Var`") is None


def test_broken_models_are_errors_that_the_worker_survives(pool: LocalPool) -> None:
    good = case("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    program = good.program
    loose = case("g (float[2] x) => (float[2] y) { y = Relu(nowhere) }")
    noise = Case(Program("onnx", b"\xff" * 40, program.inputs, program.outputs), good.feeds)
    pids = pool.pids()
    assert all(isinstance(outcome, Raised) for item in (loose, noise) for outcome in run(pool, item))
    assert pool.pids() == pids


def test_the_process_is_started_with_one_thread() -> None:
    assert prepare()["TVM_NUM_THREADS"] == "1"


@pytest.mark.parametrize("level", ["default", "full", "native"])
def test_a_script_runs_on_its_own(level: str, tmp_path: Path) -> None:
    """The level's pipeline, passes that are off, foreign types, sizes of zero and shapes all stand in the script."""
    item = case(
        "g (float[2,3] x, bfloat16[0,2] u) => (float[2,3] y, bfloat16[0,2] z, int64[2] s) "
        "{ a = Add(x, x) y = Relu(a) z = Neg(u) s = Shape(x) }"
    )
    off = frozenset({"ConvertLayout"})  # which fails where a shape is an output
    faulty, reference = Run(item, "tvm", Build(level, off)), Run(item, "tvm", OFF)
    evidence = Evidence("wrong", "exact", "other elements", faulty, reference, "y", {"feed": 0, "output": 0})
    path = tmp_path / "repro.py"
    path.write_text(write_script(item, evidence), "utf-8")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["the bug does not show"]), done.stdout + done.stderr


WRAPPED = (
    "g (float[2,3] x, float[2,3] u) => (float[2,3] y, float[1,3] z, float[2,3] w) <float[3] c = {1,2,3}> "
    "{ a = Add(x, c) b = Relu(a) d = Add(b, c) e = Relu(d) y = Mul(b, e) s, t = Split <axis = 0> (y) "
    "z = Sub(s, t) w = Mul(u, e) }"
)
REWRITES = ("none", "forward", "closure", "factory", "any")


@pytest.mark.parametrize("rewrite", REWRITES)
@pytest.mark.parametrize("level", ["off", "cpu", "compiled"])
def test_functions_change_nothing(rewrite: str, level: str, pool: LocalPool) -> None:
    item = case(WRAPPED)
    forms = [f"relax{{seed={seed}, count=1, depth=1, rewrite={rewrite}}}" for seed in range(4)]
    reference, *others = run(pool, item, OFF, *(Build(level, transform=stored_spec(form)) for form in forms))
    for outcome in others:
        for found, wanted in zip(values(outcome), values(reference), strict=True):
            assert found.same(wanted)


WRAP = """
import sys

sys.modules["torch"] = None
import onnx.parser
import tvm
from tvm.relax.frontend.onnx import from_onnx

from miscompile.targets.tvm.relax.functions import wrap

model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 17]> {graph}')
module = from_onnx(model)
for rewrite in {rewrites}:
    seen = set()
    for seed in range(12):
        found = wrap(module, seed, 3, 2, rewrite)
        assert found.script() == wrap(module, seed, 3, 2, rewrite).script()
        calls = {{name.name_hint: set(map(lambda v: v.name_hint, tvm.relax.analysis.all_global_vars(function)))
                 for name, function in found.functions.items()}}
        assert calls["main"]
        depth = lambda name: 1 + max(map(depth, calls[name]), default=0)
        seen.add((len(calls), depth("main"), found.script()))
    assert len(seen) > 6
    assert max(count for count, _, _ in seen) >= 4
    assert rewrite not in ("none", "forward") or max(deep for _, deep, _ in seen) >= 3
    text = "".join(script for _, _, script in seen)
    assert ("make_closure" in text) == (rewrite not in ("none", "forward"))
    print(rewrite)
"""


def test_wrapping_depends_on_the_seed_alone_and_nests() -> None:
    text = WRAP.format(graph=WRAPPED, rewrites=REWRITES)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=240, check=False)
    assert done.stdout.split() == list(REWRITES), done.stderr


def test_kernels_in_a_module_call_no_function(pool: LocalPool) -> None:
    """The importer makes a Clip without a lower limit a kernel of its own."""
    item = case("g (float[2] x) => (float[2] y) { c = Constant <value = float {0.5}> () y = Clip (x, , c) }")
    forms = [f"relax{{seed={seed}, count=1}}" for seed in (1, 1957727769)]
    reference, *others = run(pool, item, OFF, *(Build("full", transform=stored_spec(form)) for form in forms))
    for outcome in others:
        assert values(outcome)[0].same(values(reference)[0])


@pytest.mark.parametrize("level", ["default", "full"])
def test_sequences_run_before_the_level(level: str, pool: LocalPool) -> None:
    """A pass that the level lacks fires, one of a lone `FuseOps` too, and everything stays right."""
    item = case(FIRING["FuseOps"])
    orders = [("FuseOps",), ("TopologicalSort", "FoldConstant"), tuple(ABOUT.sequences), tuple(ABOUT.sequences[::-1])]
    builds = [Build(level, sequence=order, observe=True) for order in orders]
    reference, *others = run(pool, item, OFF, *builds)
    for outcome in others:
        assert values(outcome)[0].same(values(reference)[0])
    assert {"FuseOps", "FuseTIR"} <= set(others[0].observations.passes)


def test_passes_that_are_off_stay_off_in_a_sequence(pool: LocalPool) -> None:
    build = Build("default", frozenset({"FuseOps"}), sequence=("FuseOps",), observe=True)
    (outcome,) = run(pool, case(FIRING["FuseOps"]), build)
    assert "FuseOps" not in outcome.observations.passes


@pytest.mark.parametrize(
    "build",
    [
        Build("default", sequence=("FuseOps", "DecomposeOpsForInference", "FuseTIR", "FuseOps")),
        Build("off", transform=parse_spec("relax{seed=3, rewrite=factory}")),
        Build("compiled", transform=parse_spec("relax{seed=4, count=3}"), sequence=("LambdaLift", "TopologicalSort")),
    ],
    ids=["sequence", "functions", "both"],
)
def test_a_script_presents_what_the_build_presents(build: Build, tmp_path: Path) -> None:
    item = case(WRAPPED)
    faulty, reference = Run(item, "tvm", build), Run(item, "tvm", OFF)
    evidence = Evidence("wrong", "exact", "other elements", faulty, reference, "y", {"feed": 0, "output": 0})
    path = tmp_path / "repro.py"
    path.write_text(write_script(item, evidence), "utf-8")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["the bug does not show"]), done.stdout + done.stderr
