"""tinygrad as a target: the contract, its rules one by one, its devices, what it refuses, and 16-bit floats."""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

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
    "symbolic_simple:MUL(x.1)": case([node("Mul", "x c", "y")], {"x": X}, "float32", {"c": number(1)}),
    "symbolic_simple:CMPNE(CMPNE(x.1).1)": case([node("Not", "x", "p"), node("Not", "p", "y")], {"x": bools(0)}, "bool"),
    "symbolic_simple:Idempotent(x.x)": case([node("Max", "x x", "y")], {"x": X}, "float32"),
    "symbolic_simple:WHERE(_.val.val)": case([node("Where", "c x x", "y")], {"c": bools(0), "x": floats(6)}, "float32"),
    "symbolic_simple:CAST(CAST(x))": case(
        [node("Cast", "x", "p", to=11), node("Cast", "p", "y", to=1)], {"x": X}, "float32"
    ),
    "symbolic:ADD(x.x)": case([node("Add", "x x", "y")], {"x": X}, "float32"),
    "symbolic:ADD(ADD(x.c1).c2)": case(
        [node("Add", "x a", "p"), node("Add", "p b", "y")], {"x": X}, "float32", {"a": number(2), "b": number(3)}
    ),
    "symbolic:MUL(MUL(x.c1).c2)": case(
        [node("Mul", "x a", "p"), node("Mul", "p b", "y")], {"x": X}, "float32", {"a": number(2), "b": number(3)}
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
