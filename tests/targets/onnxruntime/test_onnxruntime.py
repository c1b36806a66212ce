"""ONNX Runtime as a target: the contract, the names of passes, what it refuses, 16-bit floats, and a short campaign."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from miscompile.base.dtypes import DTYPES
from miscompile.core.case import Case, Port, Program
from miscompile.core.outcome import Outcome, Raised, Rejected, Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor, tensor
from miscompile.engine.lane import Orders
from miscompile.engine.plan import Plan
from miscompile.engine.supervisor import LaneSupervisor
from miscompile.execution.conformance import check_target
from miscompile.execution.pool import LocalPool
from miscompile.graph.attributes import attributes
from miscompile.graph.emit import emit
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.ops.registry import specs
from miscompile.ops.support import Support
from miscompile.targets.known import known
from miscompile.targets.onnxruntime.about import ABOUT

pytestmark = [pytest.mark.compiler, pytest.mark.process]

OFF, FULL = Build("off"), Build("full")


@pytest.fixture(scope="module")
def pool() -> Iterator[LocalPool]:
    with LocalPool("onnxruntime") as opened:
        yield opened


def case(
    op: str,
    inputs: Mapping[str, Tensor],
    outputs: Mapping[str, str],
    constants: Mapping[str, Tensor] | None = None,
    *,
    names: str = "",
    opset: int = 21,
    ir: int = 10,
    **given: Any,
) -> Case:
    """A model of one call; `names` are its operands (`_`: left out; default: all inputs, then all constants)."""
    fixed = dict(constants or {})
    words = names.split() if names else [*inputs, *fixed]
    node = Node(op, tuple("" if word == "_" else word for word in words), tuple(outputs), attributes(given))
    graph = Graph(
        "g",
        tuple(ValueInfo(name, TensorType(value.dtype, value.shape)) for name, value in inputs.items()),
        tuple(ValueInfo(name, TensorType(dtype, None)) for name, dtype in outputs.items()),
        (node,),
        fixed,
    )
    program = Program(
        "onnx",
        emit(Model(graph, {"": opset}, ir_version=ir)),
        tuple(Port(name, value.dtype, value.shape) for name, value in inputs.items()),
        tuple(Port(name, dtype, None) for name, dtype in outputs.items()),
    )
    return Case(program, (tuple(inputs.values()),))


def ones(*shape: int, dtype: str = "float32") -> Tensor:
    return tensor(np.ones(shape), dtype)


def run(pool: LocalPool, item: Case, *builds: Build) -> list[Outcome]:
    return pool.run([Run(item, "onnxruntime", build) for build in builds or (OFF,)])


def test_the_target_keeps_the_contract() -> None:
    check_target("onnxruntime", LocalPool)


def test_the_parent_never_imports_the_compiler() -> None:
    code = (
        "import sys\n"
        "from miscompile.engine.coordinator import fuzz\n"
        "from miscompile.engine.wiring import make_pool, make_oracle\n"
        "from miscompile.execution.pool import LocalPool\n"
        "with LocalPool('onnxruntime') as pool: pool.pids()\n"
        "assert 'onnxruntime' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_observing_names_the_passes_that_fired(pool: LocalPool) -> None:
    item = two_steps("MatMul", "Add", {"x": ones(2, 3)}, {"w": ones(3, 4), "b": ones(4)})
    (seen,) = run(pool, item, Build("full", observe=True))
    assert isinstance(seen, Values)
    assert "MatMulAddFusion" in seen.observations.passes
    assert set(seen.observations.passes) <= set(ABOUT.passes)
    (without,) = run(pool, item, Build("full", frozenset({"MatMulAddFusion"}), observe=True))
    assert "MatMulAddFusion" not in without.observations.passes
    (plain,) = run(pool, item, FULL)
    assert plain.observations.passes == ()


def two_steps(first: str, second: str, inputs: Mapping[str, Tensor], constants: Mapping[str, Tensor]) -> Case:
    x, w, b = *inputs, *constants
    graph = Graph(
        "g",
        tuple(ValueInfo(name, TensorType(value.dtype, value.shape)) for name, value in inputs.items()),
        (ValueInfo("y", TensorType("float32", None)),),
        (Node(first, (x, w), ("m",)), Node(second, ("m", b), ("y",))),
        dict(constants),
    )
    ports = tuple(Port(name, value.dtype, value.shape) for name, value in inputs.items())
    payload = emit(Model(graph, {"": 21}, ir_version=10))
    return Case(Program("onnx", payload, ports, (Port("y", "float32", None),)), (tuple(inputs.values()),))


def lstm() -> Case:
    weights = {"w": ones(1, 8, 3, dtype="float64"), "r": ones(1, 8, 2, dtype="float64")}
    return case("LSTM", {"x": ones(2, 1, 3, dtype="float64")}, {"y": "float64"}, weights, hidden_size=2)


def wrong_feed() -> Case:
    good = case("Relu", {"x": ones(2, dtype="float64")}, {"y": "float64"})
    program = Program("onnx", good.program.payload, (Port("x", "float32", (2,)),), good.program.outputs)
    return Case(program, ((ones(2),),))


ZERO = tensor(np.array(0, np.int8), "int4")
INDICES = tensor(np.array([0, 1]), "int64")
ZEROS = tensor(np.zeros(2), "uint8")

REFUSED: dict[str, tuple[Case, str]] = {
    "no kernel for the type": (
        case("Erf", {"x": ones(2, dtype="bfloat16")}, {"y": "bfloat16"}),
        "no kernel for this operator, version or type",
    ),
    "no such operator": (
        case("NoSuchOperator", {"x": ones(2)}, {"y": "float32"}),
        "no kernel for this operator, version or type",
    ),
    "type not in the kernel set": (
        case("Sin", {"x": ones(2, dtype="int32")}, {"y": "int32"}),
        "the operator's kernel set lacks this type",
    ),
    "opset of the future": (case("Relu", {"x": ones(2)}, {"y": "float32"}, opset=99), "opset newer than the runtime"),
    "IR of the future": (case("Relu", {"x": ones(2)}, {"y": "float32"}, ir=99), "IR version newer than the runtime"),
    "feed of another type": (wrong_feed(), "the binding cannot feed this type"),
    "LSTM in double": (lstm(), "recurrent layers compute in single precision only"),
    "16-bit scatter": (
        case(
            "ScatterElements",
            {"x": ones(2, dtype="float16")},
            {"y": "float16"},
            {"i": INDICES, "u": ones(2, dtype="float16")},
            reduction="add",
        ),
        "scatters reduce neither 16-bit floats nor truth values",
    ),
    "dilated SAME": (
        case(
            "Conv",
            {"x": ones(1, 1, 6, 6)},
            {"y": "float32"},
            {"w": ones(1, 1, 2, 2)},
            dilations=(2, 2),
            auto_pad="SAME_UPPER",
        ),
        "convolutions take no dilations together with SAME padding",
    ),
    "LRN of even size": (case("LRN", {"x": ones(1, 4, 2, 2)}, {"y": "float32"}, size=2), "LRN takes odd sizes only"),
    "LRN of rank 3": (case("LRN", {"x": ones(1, 4, 2)}, {"y": "float32"}, size=3), "LRN takes images of rank 4 only"),
    "ConvInteger by channel": (
        case(
            "ConvInteger",
            {"x": ones(1, 1, 4, 4, dtype="uint8")},
            {"y": "int32"},
            {"w": ones(2, 1, 2, 2, dtype="uint8"), "wz": ZEROS},
            names="x w _ wz",
        ),
        "ConvInteger takes one zero point for all filters only",
    ),
    "MatMulInteger by row": (
        case(
            "MatMulInteger",
            {"x": ones(2, 3, dtype="uint8")},
            {"y": "int32"},
            {"w": ones(3, 2, dtype="uint8"), "z": ZEROS},
        ),
        "MatMulInteger takes one zero point for all rows only",
    ),
    "a language that is not here": (
        case(
            "StringNormalizer",
            {"x": tensor(np.array(["a"], object))},
            {"y": "string"},
            locale="xx_XX",
            case_change_action="UPPER",
        ),
        "StringNormalizer needs a locale that this machine does not have",
    ),
    "16-bit floats in the first operator set": (
        case(
            "Concat", {"x": ones(2, dtype="float16"), "z": ones(2, dtype="float16")}, {"y": "float16"}, opset=1, axis=0
        ),
        "casts around kernels do not fit operator sets before 6 (onnxruntime#16449), which nobody promises",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_says_when_it_refuses_is_known(name: str, pool: LocalPool) -> None:
    item, reason = REFUSED[name]
    for outcome in run(pool, item, OFF, FULL):
        assert isinstance(outcome, Unsupported | Rejected), outcome
        entry = next(rule for rule in known("onnxruntime").rejections if rule.pattern.search(outcome.message))
        assert entry.reason == reason, outcome.message


def test_control_flow_without_a_kernel_for_a_type_is_refused_lawfully_by_any_build(pool: LocalPool) -> None:
    """A transform may put an If around any operator, so that only one of two builds has it."""
    bodies = ", ".join(
        f"{branch}_branch = {branch} () => (int4[] {branch}_y) {{ {branch}_y = Identity(x) }}"
        for branch in ("then", "else")
    )
    text = f"""<ir_version: 13, opset_import: ["" : 25]>
        g (bool c, int4[] x) => (int4[] y) {{ y = If <{bodies}> (c) }}"""
    payload = onnx.parser.parse_model(text).SerializeToString()
    ports = (Port("c", "bool", ()), Port("x", "int4", ()))
    item = Case(Program("onnx", payload, ports, (Port("y", "int4", ()),)), ((tensor(np.array(True), "bool"), ZERO),))
    for outcome in run(pool, item, OFF, FULL):
        assert isinstance(outcome, Rejected), outcome


@pytest.mark.parametrize("entry", known("onnxruntime").bugs, ids=lambda bug: bug.signature)
def test_known_bugs_have_signatures_of_this_target_and_a_link(entry: Any) -> None:
    target, _, rest = entry.signature.partition(":")
    assert target == "onnxruntime"
    named = rest.rstrip(":").rpartition(":")[2].split("+")[0]  # a pass, the reductions, or one operator
    assert named in {*ABOUT.passes, *specs(), "Reduce"} or "@" in rest
    assert entry.link.startswith("https://github.com/microsoft/onnxruntime/")


def test_an_error_that_is_no_refusal_stays_an_error(pool: LocalPool) -> None:
    out_of_range = tensor(np.array([7]), "int64")
    (outcome,) = run(pool, case("Gather", {"x": ones(2)}, {"y": "float32"}, {"i": out_of_range}, axis=0))
    assert isinstance(outcome, Raised)
    assert outcome.stage == "run"


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_16_bit_floats_are_fed_and_come_back(dtype: str, pool: LocalPool) -> None:
    value = tensor(np.array([1.5, -2.0, 0.0, 96.0]), dtype)
    wide, same = (case("Cast", {"x": value}, {"y": to}, to=DTYPES[to].code) for to in ("float32", dtype))
    (widened,), (copied,) = run(pool, wide), run(pool, same)
    assert first(widened).same(tensor(np.array([1.5, -2.0, 0.0, 96.0]), "float32"))
    assert first(copied).same(value)
    empty = tensor(np.zeros((0, 2)), dtype)
    assert first(run(pool, case("Identity", {"x": empty}, {"y": dtype}))[0]).same(empty)


def first(outcome: Outcome) -> Tensor:
    assert isinstance(outcome, Values), outcome
    found = outcome.results[0][0]
    assert found is not None
    return found


@pytest.mark.slow  # a lane for some seconds; campaigns on the toy are tested by default
def test_a_lane_tests_it_without_a_failure_of_the_tool(tmp_path: Path) -> None:
    ops = ("Add", "Mul", "MatMul", "Conv", "Relu", "Transpose", "Reshape", "Concat", "Softmax", "ReduceSum")
    plan = Plan("onnxruntime", seed=5, tests=300, out=tmp_path, ops=ops, dtypes=("float32",), opset=18)
    supervisor, counted = LaneSupervisor(tmp_path / "lanes.log"), Counter[str]()
    supervisor.start(Orders(plan, (Support(open=True),), lane=0, session=1, first=0, quota=300))
    try:
        while supervisor.working:
            for message in supervisor.messages(0.1):
                assert not {"failure", "usage", "notice"} & set(message), (message, supervisor.log.read_text())
                counted.update(message.get("counters", {}))
    finally:
        supervisor.kill()
    assert counted["tests"] == 300
    assert counted["invalid"] == 0
    assert counted["unsupported"] < 60  # nobody asked what it takes
    assert counted["deaths"] == 0
