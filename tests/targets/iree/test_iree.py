"""IREE as a target: the contract, its levels and flags, what it refuses, element types, phases, and its scripts."""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from miscompile.core.case import Case, Port, Program
from miscompile.core.outcome import Outcome, Raised, Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor, tensor
from miscompile.core.verdict import Evidence
from miscompile.execution.conformance import check_target
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool
from miscompile.graph.attributes import PlainValue, attributes
from miscompile.graph.emit import emit
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.targets.iree.about import ABOUT
from miscompile.targets.iree.flags import VALUES as SWITCHES
from miscompile.targets.iree.flags import flags
from miscompile.targets.iree.phases import PHASES, Blame, bisect_phases, outputs_of
from miscompile.targets.known import known
from miscompile.triage.script import write_script

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(importlib.util.find_spec("iree") is None, reason="IREE is not installed"),
]

OFF, FULL = Build("off"), Build("full")


def open_pool(target: str = "iree") -> LocalPool:
    return LocalPool(target, limits=Limits(seconds=120.0))


@pytest.fixture(scope="module")
def pool() -> Iterator[LocalPool]:
    with open_pool() as opened:
        yield opened


def case(
    nodes: Sequence[Node], inputs: Mapping[str, Tensor], output: str, constants: Mapping[str, Tensor] | None = None
) -> Case:
    """A model with one output `y` of type `output`; the graph's name is none that MLIR would take."""
    graph = Graph(
        "a graph",
        tuple(ValueInfo(name, TensorType(value.dtype, value.shape)) for name, value in inputs.items()),
        (ValueInfo("y", TensorType(output, None)),),
        tuple(nodes),
        dict(constants or {}),
    )
    ports = tuple(Port(name, value.dtype, value.shape) for name, value in inputs.items())
    payload = emit(Model(graph, {"": 18}, ir_version=8))
    return Case(Program("onnx", payload, ports, (Port("y", output, None),)), (tuple(inputs.values()),))


def node(op: str, operands: str, result: str, **given: PlainValue) -> Node:
    return Node(op, tuple(operands.split()), (result,), attributes(given))


def run(pool: LocalPool, item: Case, *builds: Build) -> list[Outcome]:
    return pool.run([Run(item, "iree", build) for build in builds])


def first(outcome: Outcome) -> Tensor:
    assert isinstance(outcome, Values), outcome
    found = outcome.results[0][0]
    assert found is not None
    return found


X = tensor(np.arange(12).reshape(3, 4) % 5 - 2, "float32")
W = tensor(np.arange(20).reshape(4, 5) % 3, "float32")
PRODUCT = case([node("MatMul", "x w", "p"), node("Relu", "p", "y")], {"x": X}, "float32", {"w": W})


def test_the_target_keeps_the_contract() -> None:
    check_target("iree", open_pool)


def test_the_parent_never_imports_the_compiler() -> None:
    code = (
        "import sys\n"
        "from miscompile.targets import iree\n"
        "from miscompile.targets.iree import phases\n"
        "from miscompile.targets.registry import about, load_attribute\n"
        "load_attribute(about('iree').script)\n"
        "assert not [name for name in sys.modules if name.startswith('iree.')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("level", ABOUT.levels)
def test_every_level_computes_the_same(level: str, pool: LocalPool) -> None:
    (outcome,) = run(pool, PRODUCT, Build(level, frozenset({"no-such-flag"})))
    assert np.array_equal(first(outcome).array, np.maximum(X.array @ W.array, 0))


def test_levels_and_switches_are_flags() -> None:
    assert "--iree-opt-level=O0" in flags("off")
    assert {f"--{name}={value}" for name, value in SWITCHES.items()} <= set(flags("off"))
    assert "--iree-opt-level=O2" in flags("O2")
    assert "--iree-opt-data-tiling=true" in flags("full")
    without = flags("full", {"iree-opt-data-tiling"})
    assert "--iree-opt-data-tiling=true" not in without
    assert "--iree-opt-data-tiling=false" in without
    assert len({flags(level) for level in ABOUT.levels}) == len(ABOUT.levels)


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint64", "uint8", "int16", "float16", "bfloat16"])
def test_numbers_are_computed_in_their_own_type(dtype: str, pool: LocalPool) -> None:
    value = tensor(np.array([1, 2**7 - 1, 0, 3]), dtype)
    if dtype in ("int64", "uint64"):
        value = Tensor(dtype, value.array + value.array.dtype.type(2**40))
    if dtype == "float64":
        value = Tensor(dtype, value.array + 2.0**-40)
    numbers = value.numbers()
    wanted = tensor(np.add(numbers, numbers), dtype)
    (outcome,) = run(pool, case([node("Add", "x x", "y")], {"x": value}, dtype), OFF)
    assert first(outcome).same(wanted)


@pytest.mark.parametrize("shape", [(), (0, 3), (1,)])
def test_every_rank_is_fed_and_comes_back(shape: tuple[int, ...], pool: LocalPool) -> None:
    value = tensor(np.ones(shape), "float32")
    (outcome,) = run(pool, case([node("Neg", "x", "y")], {"x": value}, "float32"), OFF)
    assert first(outcome).same(Tensor("float32", -value.array))


def test_truth_values_come_back_as_such(pool: LocalPool) -> None:
    (outcome,) = run(
        pool, case([node("Less", "x c", "y")], {"x": X}, "bool", {"c": tensor(np.array(0, np.float32))}), OFF
    )
    assert first(outcome).same(tensor(X.array < 0))


AXES = tensor(np.array([1]), "int64")
REFUSED: dict[str, tuple[Case, str]] = {
    "no such operator": (
        case([node("NoSuchOperator", "x", "y")], {"x": X}, "float32"),
        "torch-mlir has no lowering for this operator, version, type or form, such as axes that are no constants",
    ),
    "axes that are an input": (
        case([node("ReduceSum", "x a", "y")], {"x": X, "a": AXES}, "float32"),
        "torch-mlir has no lowering for this operator, version, type or form, such as axes that are no constants",
    ),
    "a type": (
        case([node("Identity", "x", "y")], {"x": Tensor("float4e2m1", np.zeros(2, np.uint8))}, "float4e2m1"),
        "the importer does not know this element type",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_says_when_it_refuses_is_known(name: str, pool: LocalPool) -> None:
    item, reason = REFUSED[name]
    (outcome,) = run(pool, item, OFF)
    assert isinstance(outcome, Unsupported), outcome
    texts = [f"{kind}: {outcome.message}" for kind in ("IreeCompileError", "OnnxImportError")]
    rules = known("iree").rejections
    assert reason in [rule.reason for rule in rules if any(rule.pattern.search(text) for text in texts)]


def test_an_error_tells_what_the_compiler_said(pool: LocalPool) -> None:
    (outcome,) = run(pool, case([node("MatMul", "x x", "y")], {"x": X}, "float32"), FULL)
    assert isinstance(outcome, Raised), outcome
    assert outcome.stage == "compile"
    assert len(outcome.message) > 20


def imported(item: Case) -> bytes:
    code = (
        "import sys; from miscompile.targets.iree.runner import import_text\n"
        "sys.stdout.write(import_text(sys.stdin.buffer.read()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=item.program.payload, capture_output=True, check=True, timeout=60
    )
    return done.stdout


def test_phases_are_tried_one_by_one_until_the_fault_is_in() -> None:
    found = []

    def shows(bytecode: bytes) -> bool:
        outputs = outputs_of(bytecode, [X.array], 1)
        assert outputs is not None
        found.append(np.array_equal(outputs[0], np.maximum(X.array @ W.array, 0)))
        return len(found) == 3

    assert bisect_phases(imported(PRODUCT), flags("full"), flags("off"), shows) == Blame(PHASES[2], fails=False)
    assert found == [True, True, True]


def test_a_phase_that_fails_is_to_blame() -> None:
    item = REFUSED["no such operator"][0]
    blame = bisect_phases(imported(item), flags("full"), flags("off"), lambda _: False)
    assert blame is not None
    assert (blame.phase, blame.fails) == ("input", True)
    assert "torch.operator" in blame.detail


def test_a_module_that_cannot_run_has_no_outputs() -> None:
    assert outputs_of(b"no module", [], 1) is None


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_script_of_a_sound_program_shows_nothing(dtype: str, tmp_path: Path) -> None:
    value = tensor(np.array([1.5, -2.0, 0.0, 96.0]), dtype)
    item = case([node("Neg", "x", "y")], {"x": value}, dtype)
    faulty, reference = Run(item, "iree", Build("full", frozenset(["iree-opt-const-eval"]))), Run(item, "iree", OFF)
    text = write_script(item, Evidence("wrong", "exact", "what was seen", faulty, reference))
    path = tmp_path / "repro.py"
    path.write_text(text, "utf-8")
    shown = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120, check=False)
    assert shown.returncode == 0, shown.stderr + shown.stdout
    assert "the bug does not show" in shown.stdout
