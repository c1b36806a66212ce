"""tinygrad as a target: the contract, its rules one by one, its devices, what it refuses, and 16-bit floats."""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from miscompile.base.errors import UsageError
from miscompile.core.case import Case, Port, Program
from miscompile.core.outcome import Outcome, Raised, Rejected, Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor, tensor
from miscompile.core.verdict import Evidence
from miscompile.execution.conformance import check_target
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool
from miscompile.graph.attributes import attributes
from miscompile.graph.emit import emit
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.targets.known import known
from miscompile.targets.tinygrad.about import ABOUT
from miscompile.targets.tinygrad.names import STAGES
from miscompile.triage.script import write_script

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(importlib.util.find_spec("tinygrad") is None, reason="tinygrad is not installed"),
]

OFF, FULL = Build("off"), Build("full")


def open_pool(target: str = "tinygrad") -> LocalPool:
    return LocalPool(target, limits=Limits(seconds=60.0))


@pytest.fixture(scope="module")
def pool() -> Iterator[LocalPool]:
    with open_pool() as opened:
        yield opened


def node(op: str, operands: str, result: str, **given: Any) -> Node:
    return Node(op, tuple(operands.split()), (result,), attributes(given))


def case(
    nodes: Sequence[Node],
    inputs: Mapping[str, Tensor],
    output: str,
    constants: Mapping[str, Tensor] | None = None,
    dims: tuple[int, ...] | None = None,
) -> Case:
    """A model with one output `y` of type `output`."""
    graph = Graph(
        "g",
        tuple(ValueInfo(name, TensorType(value.dtype, value.shape)) for name, value in inputs.items()),
        (ValueInfo("y", TensorType(output, dims)),),
        tuple(nodes),
        dict(constants or {}),
    )
    ports = tuple(Port(name, value.dtype, value.shape) for name, value in inputs.items())
    payload = emit(Model(graph, {"": 18}, ir_version=8))
    return Case(Program("onnx", payload, ports, (Port("y", output, dims),)), (tuple(inputs.values()),))


def run(pool: LocalPool, item: Case, *builds: Build, target: str = "tinygrad") -> list[Outcome]:
    return pool.run([Run(item, target, build) for build in builds])


def first(outcome: Outcome) -> Tensor:
    assert isinstance(outcome, Values), outcome
    found = outcome.results[0][0]
    assert found is not None
    return found


def floats(*shape: int) -> Tensor:
    return tensor((np.arange(np.prod(shape)) % 5 - 2).reshape(shape), "float32")


def bools(start: int) -> Tensor:
    return tensor(np.arange(start, start + 6) % 3 > 0)


def number(value: float, dtype: str = "float32") -> Tensor:
    return tensor(np.asarray(value), dtype)


X, Y, Z = floats(3, 4), floats(4), tensor(np.full((3, 4), 2), "float32")
INTEGERS = tensor(np.arange(12).reshape(3, 4) - 5, "int32")

RULES: dict[str, Case] = {
    "symbolic_simple:CMPNE(CMPNE(x.1).1)": case(
        [node("Not", "x", "p"), node("Not", "p", "y")], {"x": bools(0)}, "bool"
    ),
    "symbolic_simple:Idempotent(x.x)": case([node("Max", "x x", "y")], {"x": X}, "float32"),
    "symbolic_simple:WHERE(_.val.val)": case([node("Where", "c x x", "y")], {"c": bools(0), "x": floats(6)}, "float32"),
    "symbolic_simple:CAST(CAST(x))": case(
        [node("Cast", "x", "p", to=11), node("Cast", "p", "y", to=1)], {"x": X}, "float32"
    ),
    "symbolic:ADD(x.x)": case([node("Add", "x x", "y")], {"x": X}, "float32"),
    "symbolic:ADD(ADD(x.c1).c2)": case(
        [node("Add", "x a", "p"), node("Add", "p b", "y")], {"x": X}, "float32", {"a": number(2), "b": number(3)}
    ),
    "symbolic:MUL(MUL(x.RECIPROCAL(x2)).RECIPROCAL(x3))": case(
        [node("Div", "x z", "p"), node("Div", "p w", "y")], {"x": X, "z": Z, "w": Z}, "float32"
    ),
    "sym:MUL(-1.ADD(x.y))": case([node("Add", "x v", "p"), node("Neg", "p", "y")], {"x": X, "v": Y}, "float32"),
    "sym:REDUCE(MUL(x.c))": case(
        [node("Mul", "x c", "p"), node("ReduceSum", "p", "y", keepdims=0)], {"x": X}, "float32", {"c": number(2)}
    ),
    "symbolic_simple:XOR(XOR(x.y).y)": case(
        [node("BitwiseXor", "x v", "p"), node("BitwiseXor", "p v", "y")], {"x": INTEGERS, "v": INTEGERS}, "int32"
    ),
    "symbolic_simple:FLOORMOD(x.x)": case([node("Mod", "x x", "y")], {"x": tensor(np.arange(1, 5), "int32")}, "int32"),
    "symbolic_simple:MUL(x.0)": case([node("Mul", "x c", "y")], {"x": X}, "float32", {"c": number(0)}),
    "pm_remove_bufferize:INDEX(STAGE(src))": case(
        [node("ReduceSum", "x a", "p", keepdims=1), node("Add", "x p", "y")],
        {"x": X},
        "float32",
        {"a": tensor(np.array([0]), "int64")},
    ),
    "hand_coded_optimizations": case([node("MatMul", "x w", "y")], {"x": X, "w": floats(4, 8)}, "float32"),
    "memory_coalescing": case([node("Neg", "x", "y")], {"x": X}, "float32"),
    "memory_plan_rewrite": case(
        [node("MatMul", "x w", "p"), node("MatMul", "p u", "y")],
        {"x": X, "w": floats(4, 5), "u": floats(5, 3)},
        "float32",
    ),
}


def test_the_target_keeps_the_contract() -> None:
    check_target("tinygrad", open_pool)


def test_the_release_has_all_that_the_adapter_looks_for() -> None:
    from miscompile.targets.tinygrad.releases import CACHES, CLANG, REWRITES, STAGE_FUNCTIONS, present, required

    assert required(*CLANG)
    # A cache that moves in a later release would keep results of other rules, and is to be looked up where it went.
    assert len(present(*CACHES)) == len(present(*REWRITES)) == 4
    assert all(hasattr(function, "cache_clear") for function in present(*REWRITES))
    assert {stage for stage, paths in STAGE_FUNCTIONS.items() if present(*paths)} == set(STAGES)
    assert present("tinygrad.no_such_module.name", "tinygrad.helpers.no_such_name") == []
    with pytest.raises(ImportError, match="no tinygrad\\.helpers\\.no_such_name"):
        required("tinygrad.helpers.no_such_name")


def test_the_parent_never_imports_the_compiler() -> None:
    code = (
        "import sys\n"
        "from miscompile.targets.registry import about, load_attribute\n"
        "load_attribute(about('tinygrad').script)\n"
        "assert 'tinygrad' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("name", RULES)
def test_a_rule_fires_and_does_not_when_it_is_off(name: str, pool: LocalPool) -> None:
    without = Build("full", frozenset({name, "no_such_rule"}), observe=True)
    seen, dropped, off = run(pool, RULES[name], Build("full", observe=True), without, OFF)
    assert name in seen.observations.passes, seen
    assert set(seen.observations.passes) <= set(ABOUT.passes)
    assert name not in dropped.observations.passes
    for outcome in (seen, dropped, off):
        assert np.array_equal(first(outcome).array, first(seen).array)


def test_nothing_is_left_of_what_was_switched_off(pool: LocalPool) -> None:
    item = RULES["pm_remove_bufferize:INDEX(STAGE(src))"]
    nothing = Build("full", frozenset(ABOUT.passes), observe=True)
    builds = (nothing, Build("off", observe=True), Build("full", observe=True))
    first_time, off, again = run(pool, item, *builds)
    assert first_time.observations.passes == off.observations.passes == ()
    assert len(again.observations.passes) > 10


def test_every_feed_is_run_on_its_own(pool: LocalPool) -> None:
    item = case([node("Reshape", "x s", "y")], {"x": X, "s": tensor(np.array([2, 6]))}, "float32")
    feeds = tuple((X, tensor(np.array(shape))) for shape in ([2, 6], [12, 1], [3, 4]))
    for outcome in run(pool, Case(item.program, feeds), OFF, FULL):
        assert isinstance(outcome, Values), outcome
        shapes = [result[0].shape for result in outcome.results if result[0] is not None]
        assert shapes == [(2, 6), (12, 1), (3, 4)]


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint64", "int8", "uint16", "float16"])
def test_numbers_are_computed_in_their_own_type(dtype: str, pool: LocalPool) -> None:
    with np.errstate(over="ignore"):
        value = tensor(np.array([1, 2**7 - 1, 0, 3]), dtype)
        if dtype in ("int64", "uint64"):
            value = Tensor(dtype, value.array + value.array.dtype.type(2**40))
        if dtype == "float64":
            value = Tensor(dtype, value.array + 2.0**-40)
        wanted = value.array * value.array + value.array
    item = case([node("Mul", "x x", "p"), node("Add", "p x", "y")], {"x": value}, dtype)
    for outcome in run(pool, item, OFF, FULL):
        found = first(outcome)
        assert found.dtype == dtype
        np.testing.assert_allclose(found.array, wanted, rtol=0 if dtype != "float64" else 2e-16)


def test_brain_floats_are_copied_as_they_are(pool: LocalPool) -> None:
    value = tensor(np.array([1.5, -2.0, 0.0, 96.0]), "bfloat16")
    for outcome in run(pool, case([node("Identity", "x", "y")], {"x": value}, "bfloat16"), OFF, FULL):
        assert first(outcome).same(value)


@pytest.mark.parametrize("target", ["tinygrad{device=python}", "tinygrad{reference=python}"])
def test_other_devices_give_the_same(target: str) -> None:
    item = RULES["hand_coded_optimizations"]
    with open_pool(target) as other:
        off, full = run(other, item, OFF, FULL, target=target)
    wanted = X.array @ item.feeds[0][1].array
    assert np.array_equal(first(off).array, wanted)
    assert np.array_equal(first(full).array, wanted)


def test_without_clang_one_is_told_what_to_do(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="install clang"),
        LocalPool("tinygrad", environment={"PATH": str(tmp_path)}) as opened,
    ):
        opened.pids()


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(UsageError, match="no device 'gpu'"), LocalPool("tinygrad{device=gpu}") as opened:
        opened.pids()


COMPLEX = tensor(np.array([1 + 2j], np.complex64))
IMAGE = floats(1, 1, 4, 4)
REFUSED: dict[str, tuple[Case, str]] = {
    "no such operator": (
        case([node("NoSuchOperator", "x", "y")], {"x": X}, "float32"),
        "no such operator, or not in this version or domain",
    ),
    "a type": (
        case([node("Identity", "x", "y")], {"x": COMPLEX}, "complex64"),
        "the importer knows neither strings nor complex numbers nor types below 8 bits nor 8-bit floats",
    ),
    "a domain": (
        case([Node("Relu", ("x",), ("y",), domain="my.own")], {"x": X}, "float32"),
        "the importer does not know this operator domain",
    ),
    "an attribute": (
        case([node("Relu", "x", "y", no_such_attribute=1)], {"x": X}, "float32"),
        "the operator lacks this attribute",
    ),
    "a mode": (
        case(
            [
                node(
                    "Resize",
                    "x roi scales",
                    "y",
                    mode="linear",
                    coordinate_transformation_mode="tf_crop_and_resize",
                )
            ],
            {"x": IMAGE},
            "float32",
            {
                "roi": tensor(np.array([0, 0, 0, 0, 1, 1, 1, 1]), "float32"),
                "scales": tensor(np.array([1, 1, 2, 2]), "float32"),
            },
        ),
        "Resize lacks this mode",
    ),
    "antialias": (
        case(
            [node("Resize", "x roi scales", "y", mode="linear", antialias=1)],
            {"x": IMAGE},
            "float32",
            {"roi": tensor(np.zeros(0), "float32"), "scales": tensor(np.array([1, 1, 2, 2]), "float32")},
        ),
        "the operator lacks this form",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_says_when_it_refuses_is_known(name: str, pool: LocalPool) -> None:
    item, reason = REFUSED[name]
    for outcome in run(pool, item, OFF, FULL):
        assert isinstance(outcome, Unsupported | Rejected), outcome
        texts = [f"{kind}: {outcome.message}" for kind in ("NotImplementedError", "ValueError", "TypeError")]
        rules = known("tinygrad").rejections
        assert reason in [rule.reason for rule in rules if any(rule.pattern.search(text) for text in texts)]


def test_an_error_that_is_no_refusal_stays_an_error(pool: LocalPool) -> None:
    (outcome,) = run(pool, case([node("MatMul", "x x", "y")], {"x": X}, "float32"), FULL)
    assert isinstance(outcome, Raised)
    assert outcome.kind == "RuntimeError"


def script(item: Case, faulty: Build, *culprits: str, target: str = "tinygrad") -> str:
    runs = Run(item, target, faulty), Run(item, target, OFF)
    return write_script(item, Evidence("wrong", "exact", "what was seen", *runs), culprits=culprits)


def execute(text: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    path = folder / "repro.py"
    path.write_text(text, "utf-8")
    return subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120, check=False)


def test_the_script_shows_a_fault_and_who_is_to_blame(tmp_path: Path) -> None:
    item = case(
        [node("Mul", "x c", "y")], {"x": tensor(np.array([np.inf, 1, 2], np.float32))}, "float32", {"c": number(0)}
    )
    name = "symbolic_simple:MUL(x.0)"
    shown = execute(script(item, Build("full", frozenset(set(ABOUT.passes) - {name})), name), tmp_path)
    assert shown.returncode == 1, shown.stderr
    assert f"without {name} the results are right" in shown.stdout


def test_the_script_of_a_sound_program_shows_nothing(tmp_path: Path) -> None:
    value = tensor(np.array([1.5, -2.0, 0.0, 96.0]), "bfloat16")
    item = case([node("Identity", "x", "y")], {"x": value}, "bfloat16")
    shown = execute(script(item, FULL, target="tinygrad{device=python}"), tmp_path)
    assert shown.returncode == 0, shown.stderr + shown.stdout
    assert "the bug does not show" in shown.stdout


def test_the_script_of_what_every_build_shows_switches_nothing(tmp_path: Path) -> None:
    item = case([node("Range", "a a d", "y")], {}, "int64", {"a": number(0, "int64"), "d": number(1, "int64")}, (0,))
    evidence = Evidence("dtype", "declared", "int32 where ONNX infers int64", Run(item, "tinygrad", OFF), output="y")
    text = write_script(item, evidence)
    assert "def spell" not in text
    shown = execute(text, tmp_path)
    assert shown.returncode == 1, shown.stderr
    assert "int32" in shown.stdout
