"""OpenVINO as a target: the contract, passes that fire and can be switched off, narrowed types, what it refuses."""

import importlib.util
import math
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, parser

from miscompile.base.dtypes import DTYPES
from miscompile.core.case import Case, Port, Program
from miscompile.core.outcome import Outcome, Raised, Rejected, Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor, tensor
from miscompile.core.verdict import Evidence
from miscompile.execution.conformance import check_target
from miscompile.execution.pool import LocalPool
from miscompile.graph.emit import to_program
from miscompile.graph.read import read
from miscompile.targets.known import known
from miscompile.targets.openvino.about import ABOUT, FRAMES, MODEL_PASSES, PASSES
from miscompile.targets.openvino.observer import ObserverError, built
from miscompile.triage.confirm import run_script
from miscompile.triage.script import write_script

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(importlib.util.find_spec("openvino") is None, reason="openvino is not installed"),
]


def observer_problem() -> str:
    """Say why the library that watches passes cannot be made, in a word for pytest; empty when it can."""
    try:
        built()
    except ObserverError as error:
        return str(error)
    return ""


PROBLEM = observer_problem()
watched = pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM or "there is a C++ compiler")

OFF, FULL = Build("off"), Build("full")


@pytest.fixture(scope="module")
def pool() -> Iterator[LocalPool]:
    with LocalPool("openvino") as opened:
        yield opened


def run(pool: LocalPool, item: Case, *builds: Build) -> list[Outcome]:
    return pool.run([Run(item, "openvino", build) for build in builds])


def first(outcome: Outcome) -> Tensor:
    assert isinstance(outcome, Values), outcome
    found = outcome.results[0][0]
    assert found is not None
    return found


def single(op: str, given: Sequence[Tensor], dtype: str, *, opset: int = 21, ir: int = 10, **attributes: Any) -> Case:
    """A model of one call on inputs x0, x1, ..., whose output y is of `dtype`."""
    names = [f"x{index}" for index in range(len(given))]
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"], **attributes)],
        "g",
        [
            helper.make_tensor_value_info(name, DTYPES[value.dtype].code, value.shape)
            for name, value in zip(names, given, strict=True)
        ],
        [helper.make_tensor_value_info("y", DTYPES[dtype].code, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)
    ports = tuple(Port(name, value.dtype, value.shape) for name, value in zip(names, given, strict=True))
    program = Program("onnx", model.SerializeToString(), ports, (Port("y", dtype, None),))
    return Case(program, (tuple(given),))


def chain(text: str) -> Case:
    """A model in ONNX's text form; every input is float32 and counts upwards in halves."""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["":17]>\ng {text}')
    shapes = [tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim) for value in model.graph.input]
    ports = tuple(Port(value.name, "float32", shape) for value, shape in zip(model.graph.input, shapes, strict=True))
    feed = tuple(tensor((np.arange(math.prod(shape), dtype=np.float32) - 5.5).reshape(shape) / 2) for shape in shapes)
    return Case(Program("onnx", model.SerializeToString(), ports, (Port("y", "float32", None),)), (feed,))


PLANE = "(float[3,4] x) => (float[3,4] y)"
FIRING = {
    "EliminateEltwise": f"{PLANE} <float one = {{1}}> {{ t = Mul(x, one) y = Abs(t) }}",
    "TransposeFuse": f"{PLANE} {{ t = Transpose<perm=[1,0]>(x) u = Transpose<perm=[1,0]>(t) y = Abs(u) }}",
    "FullyConnectedBiasFusion": "(float[3,4] x) => (float[3,2] y) <float[4,2] w = {1,2,3,4,5,6,7,8}, "
    "float[2] b = {1,-1}> { t = MatMul(x, w) y = Add(t, b) }",
    "EliminateIdentity": f"{PLANE} {{ t = Identity(x) y = Abs(t) }}",
    "SoftPlusFusion": f"{PLANE} <float one = {{1}}> {{ t = Exp(x) u = Add(t, one) y = Log(u) }}",
    "GeluFusionWithErfTwo": f"{PLANE} <float r = {{1.41421356}}, float one = {{1}}, float half = {{0.5}}> "
    "{ a = Div(x, r) b = Erf(a) c = Add(b, one) d = Mul(x, c) y = Mul(d, half) }",
    "MultiplyMultiplyFusion": f"{PLANE} <float c = {{2}}, float d = {{3}}> {{ t = Mul(x, c) y = Mul(t, d) }}",
    "AddAddFusion": f"{PLANE} <float two = {{2}}, float three = {{3}}> {{ t = Add(x, two) y = Add(t, three) }}",
    "ClampFusion": f"{PLANE} <float low = {{-2}}, float high = {{3}}> {{ t = Max(x, low) y = Min(t, high) }}",
    "EliminateUnsqueeze": f"{PLANE} <int64[1] k = {{0}}> {{ t = Unsqueeze(x, k) u = Squeeze(t, k) y = Abs(u) }}",
    "SubtractFusion": "(float[3,4] x, float[3,4] z) => (float[3,4] y) <float m = {-1}> { t = Mul(z, m) y = Add(x, t) }",
    "EliminateConcat": f"{PLANE} {{ t = Concat<axis=0>(x) y = Abs(t) }}",
    "SwishFusionWithSigmoid": f"{PLANE} {{ t = Sigmoid(x) y = Mul(x, t) }}",
    "SoftmaxFusion": f"{PLANE} <int64[1] k = {{1}}> "
    "{ m = ReduceMax<axes=[1]>(x) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, k) y = Div(e, s) }",
    "TransposeMatMul": "(float[4,3] x, float[4,2] w) => (float[3,2] y) "
    "{ t = Transpose<perm=[1,0]>(x) y = MatMul(t, w) }",
}
"""Models on which the pass fires."""


def test_the_target_keeps_the_contract() -> None:
    check_target("openvino", LocalPool)


def test_names_are_unique_and_complete() -> None:
    assert len({*PASSES, *FRAMES}) == len(PASSES) + len(FRAMES)
    assert set(MODEL_PASSES) <= set(PASSES)
    assert set(FIRING) <= set(PASSES)


@watched
@pytest.mark.parametrize("name", FIRING)
def test_a_pass_fires_and_can_be_switched_off(name: str, pool: LocalPool) -> None:
    item = chain(FIRING[name])
    seen, without, off = run(
        pool, item, Build(observe=True), Build("full", frozenset({name}), observe=True), Build("off", observe=True)
    )
    assert name in seen.observations.passes
    assert set(seen.observations.passes) <= set(PASSES)
    assert name not in without.observations.passes
    assert off.observations.passes == ()
    np.testing.assert_allclose(first(without).array, first(seen).array, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(first(off).array, first(seen).array, rtol=1e-6, atol=1e-6)


@watched
def test_a_pass_over_the_whole_model_can_be_switched_off(pool: LocalPool) -> None:
    item = chain(f"{PLANE} {{ t = Sigmoid(x) u = Sigmoid(x) y = Mul(t, u) }}")
    seen, without = run(pool, item, FULL, Build("full", frozenset(MODEL_PASSES)))
    assert first(seen).same(first(without))


@pytest.mark.parametrize("body", ["y = Dropout(x)", "t = Dropout(x) y = Abs(t)", "y = Identity(x)", "y = Abs(x)"])
@pytest.mark.parametrize("inputs", ["float[3] u, float[2] x", "float[2] x, float[3] u", "float[2] x"])
def test_inputs_are_told_apart_when_some_are_dropped_or_renamed(inputs: str, body: str, pool: LocalPool) -> None:
    item = chain(f"({inputs}) => (float[2] y) {{ {body} }}")
    given = next(value for port, value in zip(item.program.inputs, item.feeds[0], strict=True) if port.name == "x")
    wanted = np.abs(given.array) if "Abs" in body else given.array
    for outcome in run(pool, item, OFF, FULL):
        assert np.array_equal(first(outcome).array, wanted)


@pytest.mark.parametrize(
    "inputs", ["float ratio, float[2] x", "float[2] x, float ratio", "float[2] x, float[2] u, float ratio"]
)
def test_dropout_drops_its_ratio_and_renames_what_it_passes_on(inputs: str, pool: LocalPool) -> None:
    item = chain(f"({inputs}) => (float[2] y) {{ y = Dropout(x, ratio) }}")
    given = next(value for port, value in zip(item.program.inputs, item.feeds[0], strict=True) if port.name == "x")
    for outcome in run(pool, item, OFF, FULL):
        assert first(outcome).same(given)


def test_without_a_compiler_levels_remain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    item = chain(FIRING["EliminateEltwise"])
    with LocalPool("openvino") as bare:
        outcomes = run(bare, item, OFF, Build("plain"), Build("full", frozenset(PASSES), observe=True))
    assert all(first(outcome).same(first(outcomes[0])) for outcome in outcomes)
    assert outcomes[2].observations.passes == ()


@watched
def test_many_processes_may_make_the_library_at_once(tmp_path: Path) -> None:
    code = "from miscompile.targets.openvino.observer import prepare; print(prepare()['LD_PRELOAD'])"
    environment = {"PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path), "LD_PRELOAD": ""}
    started = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment, text=True)
        for _ in range(2)
    ]
    answers = [process.communicate(timeout=120)[0].strip() for process in started]
    assert answers[0] == answers[1]
    assert [str(path) for path in (tmp_path / "miscompile").iterdir()] == [answers[0]]


def test_preparing_imports_no_compiler() -> None:
    code = (
        "import sys\nfrom miscompile.targets.openvino.observer import prepare\nprepare()\n"
        "assert not [name for name in sys.modules if name.startswith('openvino')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8e4m3fn", "float8e5m2", "int4", "uint4"])
def test_types_that_numpy_lacks_are_fed_and_come_back(dtype: str, pool: LocalPool) -> None:
    info = DTYPES[dtype]
    bits = np.array([[1, 2, 3], [5, 6, 7], [4, 0, 1]], np.uint8).astype(info.storage)
    value = Tensor(dtype, bits.astype(np.float16) if dtype == "float16" else bits)
    for outcome in run(pool, single("Identity", [value], dtype), OFF, FULL):
        assert first(outcome).same(value)


@pytest.mark.parametrize("dtype", [wide for wide, narrow in ABOUT.narrowed.items() if wide == narrow])
def test_small_integers_do_not_wrap_around(dtype: str, pool: LocalPool) -> None:
    """What the largest value and one make is not what ONNX says; hence nothing is asked about it."""
    largest = np.iinfo(dtype).max
    x = tensor(np.array([largest], dtype))
    head = '<ir_version: 8, opset_import: ["" : 18]>'
    text = f"{head} g ({dtype}[1] x) => (int32[1] y) {{ a = Add(x, x)  y = Cast<to = 6>(a) }}"
    item = Case(to_program(read(parser.parse_model(text).SerializeToString())), ((x,),))
    wrapped = int(np.array([largest], dtype)[0].astype(np.int64) * 2)
    (outcome,) = run(pool, item, FULL)
    assert first(outcome).array[0] in (largest, wrapped)


@pytest.mark.parametrize("level", ["off", "full"])
@pytest.mark.parametrize("dtype", [wide for wide, narrow in ABOUT.narrowed.items() if wide != narrow])
def test_narrowed_types_lose_what_the_narrow_one_cannot_hold(dtype: str, level: str, pool: LocalPool) -> None:
    """Sums of the largest values are those of the narrow type; small ones are right."""
    large, small = (1 + 2.0**-40, 0.5) if DTYPES[dtype].kind == "float" else (2**31 + 5, 7)
    x = np.array([large, small], DTYPES[dtype].storage)
    one = np.array([1, 1], DTYPES[dtype].storage)
    (outcome,) = run(pool, single("Max", [tensor(x), tensor(one)], dtype), Build(level))
    found = first(outcome)
    assert found.dtype == dtype
    assert found.array[1] == max(small, 1)
    assert found.array[0] != x[0]


@pytest.mark.parametrize("dtype", ["int32", "int16", "uint16", "uint8", "int8", "float32", "float16"])
def test_other_types_keep_their_largest_values(dtype: str, pool: LocalPool) -> None:
    info = DTYPES[dtype]
    value = tensor(np.array([info.low, info.high, 1], info.storage))
    for outcome in run(pool, single("Concat", [value, value], dtype, axis=0), OFF, FULL):
        assert np.array_equal(first(outcome).array, np.concatenate([value.array, value.array]))


def ones(*shape: int, dtype: str = "float32") -> Tensor:
    return tensor(np.ones(shape), dtype)


def wrong_feed() -> Case:
    good = single("Relu", [ones(2)], "float32")
    return Case(good.program, ((ones(3),),))


REFUSED: dict[str, tuple[Case, str]] = {
    "no such operator": (single("NoSuchOperator", [ones(2)], "float32"), "the ONNX front end lacks the operator"),
    "no such type": (
        single("Cast", [ones(2)], "float8e4m3fnuz", to=TensorProto.FLOAT8E4M3FNUZ),
        "the ONNX front end lacks the element type",
    ),
    "volumetric grid": (
        single("GridSample", [ones(1, 1, 2, 2, 2), ones(1, 2, 2, 2, 3)], "float32"),
        "GridSample takes images only",
    ),
    "wrap padding": (
        single("Pad", [ones(2, 2), tensor(np.array([1, 1, 1, 1]), "int64")], "float32", mode="wrap"),
        "Pad lacks the mode",
    ),
    "Mod of floats without fmod": (
        single("Mod", [ones(2), ones(2)], "float32", opset=13),
        "Mod of floats needs fmod, as ONNX says",
    ),
    "feed of another shape": (wrong_feed(), "the feed does not fit the model"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_says_when_it_refuses_is_known(name: str, pool: LocalPool) -> None:
    item, reason = REFUSED[name]
    for outcome in run(pool, item, OFF, FULL):
        assert isinstance(outcome, Unsupported | Rejected), outcome
        entry = next(rule for rule in known("openvino").rejections if rule.pattern.search(outcome.message))
        assert entry.reason == reason, outcome.message


def test_an_error_that_is_no_refusal_stays_an_error(pool: LocalPool) -> None:
    (outcome,) = run(pool, single("MatMul", [ones(2, 3), ones(2, 3)], "float32"), FULL)
    assert isinstance(outcome, Raised)


@pytest.mark.parametrize("entry", known("openvino").bugs, ids=lambda bug: bug.signature)
def test_known_bugs_have_signatures_of_this_target_and_a_link(entry: Any) -> None:
    assert entry.signature.startswith("openvino:")
    assert entry.link.startswith("https://github.com/openvinotoolkit/")


def evidence(faulty: Build, reference: Build, item: Case) -> Evidence:
    runs = [Run(item, "openvino", build) for build in (faulty, reference)]
    return Evidence("wrong", "exact", "y differs", runs[0], runs[1], "y", {"feed": 0, "output": 0})


@watched
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_script_builds_both_levels_and_switches_passes(dtype: str, tmp_path: Path) -> None:
    item = chain(FIRING["EliminateEltwise"]) if dtype == "float32" else single("Relu", [ones(2, dtype=dtype)], dtype)
    disabled = frozenset({"TransposeFuse"})
    text = write_script(
        item, evidence(Build("full", disabled), OFF, item), culprits=["EliminateEltwise"], title="Nothing is wrong"
    )
    assert "miscompile" not in text
    path = tmp_path / "script.py"
    path.write_text(text)
    result = run_script(path, sys.executable, 120)
    assert result.status == "absent", result
    assert "without EliminateEltwise the results are right" in result.stdout
