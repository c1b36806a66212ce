"""Compilers behind their front ends for programs of torch, held against torch itself."""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from miscompile.core.outcome import Outcome, Rejected, Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor, tensor
from miscompile.execution.pool import LocalPool
from miscompile.instances.instance import Instance
from miscompile.instances.program import to_case
from miscompile.instances.values import Held, Name, SliceValue, Value
from miscompile.targets.registry import load_attribute, parse_target
from miscompile.targets.torch.source import source
from miscompile.triage.inlining import inlined

NEEDS = {
    "inductor{via=torch}": ("torch",),
    "onnxruntime{via=torch}": ("torch", "onnxscript"),
    "onnxruntime{via=torchscript}": ("torch",),
    "openvino{via=exported}": ("torch", "openvino"),
    "openvino{via=torch}": ("torch", "openvino"),
    "tvm{via=torch}": ("torch", "tvm"),
}
pytestmark = [pytest.mark.compiler, pytest.mark.process]

X = Held(tensor(np.arange(48, dtype=np.float32).reshape(1, 3, 4, 4) / 8))
V = Held(tensor(np.array([3.0, -1.5, 2.0], np.float32)))


def function(api: str, *args: Value, **kwargs: Value) -> Instance:
    return Instance("torch", f"torch.{api}", "method" if api.startswith("Tensor.") else "function", args, kwargs)


INSTANCES = (
    function("nn.functional.max_pool2d", X, 2),
    function("cat", [V, V], dim=0),
    function("Tensor.add_", V, V),
    function("sub", Held(tensor(np.array([3, 5], np.int64))), 2),
    function("topk", V, 2),
    function("Tensor.__getitem__", X, (Name("special", "Ellipsis"), SliceValue(0, None, 2))),
    Instance("torch", "torch.nn.Conv2d", "module", (3, 2, 3), {}, (X,)),
)

CONVERSIONS = {
    "inductor{via=torch}": "lowering.py:_low_memory_max_pool_with_offsets",
    "onnxruntime{via=torch}": "nn.py:aten_max_pool2d",
    "onnxruntime{via=torchscript}": "symbolic_opset10.py:_max_pool[aten::max_pool2d]",
    "openvino{via=exported}": "aten.max_pool2d",
    "openvino{via=torch}": "aten::max_pool2d",
    "tvm{via=torch}": "base_fx_graph_translator.py:_max_pool2d",
}


@pytest.fixture(scope="module", params=sorted(NEEDS))
def front(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    missing = [package for package in NEEDS[name] if importlib.util.find_spec(package) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed here")
    return name


@pytest.fixture(scope="module")
def pool(front: str) -> Iterator[LocalPool]:
    with LocalPool(front) as opened:
        yield opened


@pytest.fixture(scope="module")
def library() -> Iterator[LocalPool]:
    with LocalPool("torch") as opened:
        yield opened


def run(pool: LocalPool, target: str, instance: Instance, observe: bool = False) -> Outcome:
    return pool.run([Run(to_case(instance), target, Build(observe=observe))])[0]


def values(outcome: Outcome) -> list[Tensor]:
    assert isinstance(outcome, Values), outcome
    return [output for output in outcome.results[0] if output is not None]


def test_operators_give_what_torch_gives(pool: LocalPool, library: LocalPool, front: str) -> None:
    for instance in INSTANCES:
        expected, found = values(run(library, "torch", instance)), values(run(pool, front, instance))
        assert [(one.dtype, one.shape) for one in found] == [(one.dtype, one.shape) for one in expected], instance.api
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one.array, other.array, rtol=1e-4, atol=1e-4, err_msg=instance.api)


def test_conversion_functions_are_seen_where_asked_for(pool: LocalPool, front: str) -> None:
    seen = run(pool, front, INSTANCES[0], observe=True).observations.passes
    assert seen[-1].startswith(CONVERSIONS[front]), seen
    assert run(pool, front, INSTANCES[0]).observations.passes == ()


def test_graphs_that_torch_does_not_make_are_refused(pool: LocalPool, front: str) -> None:
    """The number of sections stands in a tensor, on whose value the number of results depends."""
    sections = Held(tensor(np.array(3, np.int64)))
    outcome = run(pool, front, function("tensor_split", Held(tensor(np.ones(6, np.float32))), sections))
    if isinstance(outcome, Values):
        assert len(outcome.results[0]) == 3
    else:
        assert isinstance(outcome, Unsupported | Rejected), outcome


def test_what_is_outside_torch_is_refused(pool: LocalPool, front: str) -> None:
    assert isinstance(run(pool, front, function("os.getcwd")), Unsupported)


@pytest.mark.parametrize("instance", [INSTANCES[0], INSTANCES[2]], ids=["max_pool2d", "add_"])
def test_scripts_convert_as_the_adapter_does(front: str, instance: Instance, tmp_path: Path) -> None:
    """Tracing runs the operator, so that one in place must not change what the compiled model is given."""
    spec = parse_target(front)
    assert spec.front is not None
    lines = load_attribute(spec.front.script)
    check = (
        "expected = flat(model(*[value.clone() for value in inputs]))\n"
        "found = converted(model, inputs)\n"
        "assert [one.dtype for one in found] == [one.dtype for one in expected]\n"
        "assert all(np.allclose(one, other) for one, other in zip(found, expected, strict=True))\n"
        'print("they agree")\n'
    )
    own = "\n".join([source(instance), lines.run, f"print({lines.versions})", check])
    found = inlined(own, lines.sources, lines.imports)
    parts = [*lines.setup, *found.imports, "import numpy as np", found.text, own]
    file = tmp_path / "script.py"
    file.write_text("\n".join(parts), "utf-8")
    command = [sys.executable, "-W", "ignore", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert "they agree" in done.stdout, done.stderr[-2000:]
