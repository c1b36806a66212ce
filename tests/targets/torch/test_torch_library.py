"""PyTorch as a library: what operators give, what is refused, seeds, and the source that says the same."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from miscompile.core.outcome import Outcome, Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor, tensor
from miscompile.execution.pool import LocalPool
from miscompile.instances.instance import Instance
from miscompile.instances.program import to_case
from miscompile.instances.values import Drawn, Held, Made, Name, SliceValue, Value
from miscompile.targets.torch.source import source
from miscompile.triage.library_script import Failure, write_front_script

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed here"),
]

X = Held(tensor(np.arange(48, dtype=np.float32).reshape(1, 3, 4, 4)))
V = Held(tensor(np.array([3.0, -1.5, 2.0], np.float32)))
B = Held(tensor(np.array([1.5, 2.5], np.float32), "bfloat16"))
C = Held(tensor(np.array([1 + 2j, -3j], np.complex64)))


@pytest.fixture(scope="module")
def pool() -> Iterator[LocalPool]:
    with LocalPool("torch") as opened:
        yield opened


def function(api: str, *args: Value, **kwargs: Value) -> Instance:
    return Instance("torch", f"torch.{api}", "method" if api.startswith("Tensor.") else "function", args, kwargs)


def run(pool: LocalPool, instance: Instance, feeds: int = 1, constants: bool = False) -> Outcome:
    case = to_case(instance, constants=constants)
    return pool.run([Run(replace(case, feeds=case.feeds * feeds), "torch", Build())])[0]


def values(outcome: Outcome, feed: int = 0) -> list[Tensor]:
    assert isinstance(outcome, Values), outcome
    return [output for output in outcome.results[feed] if output is not None]


def test_results_are_flattened_in_order(pool: LocalPool) -> None:
    largest, place = values(run(pool, function("max", V, 0)))
    assert (largest.array.item(), place.array.item(), place.dtype) == (3.0, 0, "int64")


@pytest.mark.parametrize("constants", [False, True])
def test_tensors_inside_lists_are_inputs_or_constants(pool: LocalPool, constants: bool) -> None:
    (found,) = values(run(pool, function("cat", [V, V, Drawn("float32", (2,))], dim=0), constants=constants))
    assert found.array[:6].tolist() == [3.0, -1.5, 2.0] * 2
    assert found.shape == (8,)


@pytest.mark.parametrize(
    "held", [B, C, Held(Drawn("float8e5m2", (3,)).tensor()), Held(Drawn("uint16", (2, 0)).tensor())]
)
def test_element_types_come_back_as_they_went(pool: LocalPool, held: Held) -> None:
    (found,) = values(run(pool, function("clone", held)))
    assert found.same(held.tensor)


def test_conjugated_views_are_written_out(pool: LocalPool) -> None:
    (found,) = values(run(pool, function("conj", C)))
    assert found.same(tensor(np.conj(C.tensor.array)))


def test_parameters_of_all_kinds(pool: LocalPool) -> None:
    index = (Name("special", "Ellipsis"), SliceValue(None, None, 2))
    (found,) = values(run(pool, function("Tensor.__getitem__", X, index)))
    assert found.shape == (1, 3, 4, 2)
    (found,) = values(
        run(
            pool,
            function("Tensor.to", V, Name("dtype", "bfloat16"), memory_format=Name("memory_format", "preserve_format")),
        )
    )
    assert found.dtype == "bfloat16"
    (found,) = values(
        run(pool, function("zeros", (2,), layout=Name("layout", "strided"), device=Name("device", "cpu")))
    )
    assert found.array.tolist() == [0.0, 0.0]


def test_modules_have_the_same_weights_in_every_process(pool: LocalPool) -> None:
    instance = Instance("torch", "torch.nn.Conv2d", "module", (3, 2, 3), {}, (X,))
    (first,) = values(run(pool, instance))
    with LocalPool("torch") as other:
        assert values(run(other, instance))[0].same(first)


def test_modules_inside_modules_and_eval_mode(pool: LocalPool) -> None:
    layer = Made("torch.nn.Dropout", (0.5,))
    instance = Instance("torch", "torch.nn.Sequential", "module", (layer, Made("torch.nn.ReLU")), {}, (V,))
    (found,) = values(run(pool, instance))
    assert found.array.tolist() == [3.0, 0.0, 2.0]


def test_every_run_is_like_the_first_but_for_the_seed(pool: LocalPool) -> None:
    written = run(pool, function("Tensor.add_", V, V), feeds=2)
    assert values(written)[0].same(values(written, 1)[0])
    mean = function(
        "nn.functional.batch_norm",
        X,
        Held(tensor(np.zeros(3, np.float32))),
        Held(tensor(np.ones(3, np.float32))),
        training=True,
    )
    kept = run(pool, mean, feeds=2, constants=True)
    assert values(kept)[0].same(values(kept, 1)[0])
    drawn = run(pool, function("bernoulli", Held(tensor(np.full(64, 0.5, np.float32)))), feeds=2)
    assert not values(drawn)[0].same(values(drawn, 1)[0])
    assert values(drawn)[0].same(
        values(run(pool, function("bernoulli", Held(tensor(np.full(64, 0.5, np.float32))))))[0]
    )


@pytest.mark.parametrize(
    "instance",
    [
        function("Tensor.size", V),
        function("Tensor.to_sparse", V),
        function("zeros", (2,), device=Name("device", "cuda:0")),
        function("zeros", (2,), dtype=Name("dtype", "float1")),
        function("no_such_operator", V),
        function("matmul", Held(Drawn("bool", (2, 2)).tensor()), Held(Drawn("bool", (2, 2)).tensor())),
    ],
)
def test_what_has_no_place_in_a_program_is_unsupported(pool: LocalPool, instance: Instance) -> None:
    assert isinstance(run(pool, instance), Unsupported)


@pytest.mark.parametrize(
    "path",
    [
        "os.system",
        "builtins.eval",
        "torch.os.system",
        "torch.sys.exit",
        "torch.load",
        "torch.hub.load",
        "torch.compile",
        "torch.nn.functional.math.sqrt",
        "torch.nn.functional.importlib.import_module",
        "torch.nn.Linear.forward.__globals__",
        "torch.Tensor.__init__.__globals__",
        "torch.ops.load_library",
        "torch._C.import_ir_module",
        "torch.set_default_dtype",
        "torch.utils.cpp_extension.load_inline",
        "torch",
        "torch.nn",
        "torch.float32",
    ],
)
def test_nothing_but_operators_can_be_named(pool: LocalPool, path: str) -> None:
    for instance in (Instance("torch", path, "function", ("x",)), function("relu", V, Name("function", path))):
        outcome = run(pool, instance)
        assert isinstance(outcome, Unsupported), outcome
        assert path in outcome.message


SOURCES = (
    function("nn.functional.max_pool2d", X, 2, return_indices=True),
    function("cat", (C, C), dim=0),
    function("Tensor.add_", B, B),
    function("Tensor.__getitem__", X, (Name("special", "Ellipsis"), SliceValue(0, None, 2))),
    function("add", Drawn("float32", (100,)), Drawn("bfloat16", (100,), seed=3), alpha=2),
    function("nan_to_num", V, nan=float("inf")),
    Instance("torch", "torch.nn.Conv2d", "module", (3, 2, 3), {"dtype": Name("dtype", "float32")}, (X,)),
)


def test_the_source_says_what_the_adapter_does(pool: LocalPool, tmp_path: Path) -> None:
    found = []
    for place, instance in enumerate(SOURCES):
        file = tmp_path / f"source{place}.py"
        text = source(instance, constants=place % 2 == 1)
        file.write_text(f"{text}\nwith torch.no_grad():\n    results = flat(model(*inputs))\n", "utf-8")
        found.append(str(file))
    script = (
        "import json, runpy, sys\n"
        "spaces = [runpy.run_path(path) for path in sys.argv[1:]]\n"
        "said = lambda array: [str(array.dtype), list(array.shape), array.tobytes().hex()]\n"
        "print(json.dumps([[said(array) for array in space['results']] for space in spaces]))\n"
    )
    command = [sys.executable, "-c", script, *found]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    for place, (instance, said) in enumerate(zip(SOURCES, json.loads(done.stdout), strict=True)):
        expected = values(run(pool, instance, constants=place % 2 == 1))
        widened = [np.asarray(one.numbers()) for one in expected]
        assert said == [[str(one.dtype), list(one.shape), one.tobytes().hex()] for one in widened], instance.api


@pytest.mark.parametrize("message", ["C:\\xyz\\N{no}\\u12", 'expected """ here"', "\x1b[31mred"])
def test_no_message_breaks_a_script(message: str) -> None:
    instance = Instance("torch", "torch.abs", "function", (V,))
    failure = Failure("exception", "run", message, "RuntimeError", 0, 0, 0.0, ())
    text = write_front_script(instance, "inductor{via=torch}", failure, {})
    compile(text, "repro.py", "exec")
    assert text.isprintable() or set(filter(lambda letter: not letter.isprintable(), text)) == {"\n"}


def test_operands_that_were_constants_are_constants_in_scripts_too() -> None:
    given = (Held(tensor(np.ones((2, 2), np.float32))), Held(tensor(np.ones((2, 2), np.float32))))
    instance = Instance("torch", "torch.mul", "function", given)
    failure = Failure("wrong", "run", "a test", "", 0, 0, 1e-4, ())
    assert "def forward(self, x0, x1):" in write_front_script(instance, "inductor{via=torch}", failure, {})
    text = write_front_script(instance, "inductor{via=torch}", failure, {}, constants=True)
    assert "def forward(self, x0):" in text
