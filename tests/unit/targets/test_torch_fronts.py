"""Front ends for programs of torch, without torch: faces, refusals, names of conversion functions, scripts as text."""

import ast
import functools
from collections.abc import Callable

import numpy as np
import pytest

from miscompile.core.run import Build
from miscompile.core.tensor import tensor
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn, Held, Made, Name, Value
from miscompile.targets.about import FrontLines
from miscompile.targets.known import known
from miscompile.targets.registry import load_attribute, parse_target
from miscompile.targets.torch.conversions import Conversions, name_of
from miscompile.targets.torch.source import source

FRONTS = (
    "inductor{via=torch}",
    "onnxruntime{via=torch}",
    "onnxruntime{via=torchscript}",
    "openvino{via=exported}",
    "openvino{via=torch}",
    "torch_onnx{via=torch}",
    "tvm{via=torch}",
)
X = Held(tensor(np.ones((1, 3, 4, 4), np.float32)))


@pytest.mark.parametrize("text", FRONTS)
def test_a_face_shows_programs_of_torch(text: str) -> None:
    spec = parse_target(text)
    assert spec.about.kinds == ("torch",)
    assert "torch" in spec.about.distributions
    assert spec.front is not None
    assert spec.front.converters or spec.about.name == "openvino"  # whose translators are no Python


def test_the_library_is_a_target() -> None:
    face = parse_target("torch").about
    assert (face.kinds, face.levels, face.distributions) == (("torch",), ("off", "full"), ("torch",))


@pytest.mark.parametrize("text", FRONTS)
def test_refusals_of_torch_are_no_bugs_of_the_compiler(text: str) -> None:
    spec = parse_target(text)
    table = known(spec.about.name, spec.via)
    for kind in ("ExportRefusedError", "OutsideTorchError"):
        found = table.rejection(kind, "torch.export makes no graph: RuntimeError: x")
        assert found is not None
        assert found.status in ("unsupported", "rejected")


@pytest.mark.parametrize("text", FRONTS)
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("AssertionError", ""),
        ("AssertionError", "expected 2 sizes, found 3"),
        ("TypeError", "'NoneType' object is not subscriptable"),
        ("IndexError", "list index out of range"),
        ("KeyError", "'dim'"),
        ("ValueError", "axes do not match array"),
        ("InternalError", "Check failed: (axis < ndim) is false"),
    ],
)
def test_failures_inside_converters_are_no_refusals(text: str, kind: str, message: str) -> None:
    spec = parse_target(text)
    assert known(spec.about.name, spec.via).rejection(kind, message) is None


@pytest.mark.parametrize(
    ("target", "kind", "message"),
    [
        ("tvm{via=torch}", "AssertionError", "Unsupported function types ['erfinv.default']"),
        ("tvm{via=torch}", "NotImplementedError", "input_type torch.complex64 is not handled yet"),
        ("onnxruntime{via=torch}", "DispatchError", "No ONNX function found for <OpOverload(op='prims.erf_inv')>"),
        ("onnxruntime{via=torchscript}", "UnsupportedOperatorError", "Exporting the operator 'aten::cosh' to ONNX"),
        ("openvino{via=torch}", "OpConversionFailure", "-- No conversion rule found for operations: aten::diag"),
        ("torch", "NotImplementedError", "a result of type int is no tensor"),
        ("torch", "RuntimeError", "\"mse_cpu\" not implemented for 'Long'"),
    ],
)
def test_what_says_that_it_is_lacking_is_a_refusal(target: str, kind: str, message: str) -> None:
    spec = parse_target(target)
    found = known(spec.about.name, spec.via).rejection(kind, message)
    assert found is not None
    assert found.status == "unsupported"


@pytest.mark.parametrize("text", FRONTS)
def test_script_lines_define_what_converts(text: str) -> None:
    front = parse_target(text).front
    assert front is not None
    lines = load_attribute(front.script)
    assert isinstance(lines, FrontLines)
    module = ast.parse("\n".join([*lines.setup, *lines.imports, lines.run, f"print({lines.versions})"]))
    functions = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}
    assert [one.arg for one in functions["converted"].args.args] == ["model", "inputs"]


def made(key: str) -> Callable[[], str]:
    def convert() -> str:
        return key

    return convert


def test_conversion_functions_are_named_after_their_file() -> None:
    assert name_of(made) == "test_torch_fronts.py:made"
    assert name_of(functools.partial(made, "a"), "neg") == "test_torch_fronts.py:made"
    assert name_of(made("a"), "neg") == "test_torch_fronts.py:made[neg]"
    assert name_of(made("a")) == "test_torch_fronts.py:made"


def test_conversions_are_noted_where_observed_the_last_last() -> None:
    conversions = Conversions()
    first, second = conversions.watched(made("a"), "first"), conversions.watched(made("b"), "second")
    conversions.begin(Build(observe=True))
    assert (first(), second(), first()) == ("a", "b", "a")
    assert conversions.seen() == ("second", "first")
    conversions.begin(Build())
    first()
    assert conversions.seen() == ()


def classes(text: str) -> dict[str, ast.ClassDef]:
    return {node.name: node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)}


def test_a_function_is_called_in_forward() -> None:
    text = source(Instance("torch", "torch.nn.functional.max_pool2d", "function", (X, 2), {"return_indices": True}))
    assert "def forward(self, x0):" in text
    assert "return torch.nn.functional.max_pool2d(x0, 2, return_indices=True)" in text
    assert "np.ones((1, 3, 4, 4), np.float32)" in text
    assert set(classes(text)) == {"Operator"}


def test_a_module_is_constructed_with_the_adapters_seed() -> None:
    made_of = Made("torch.nn.ReLU", (), {"inplace": True})
    given: dict[str, Value] = {"bias": False, "dtype": Name("dtype", "float8e5m2"), "activation": made_of}
    text = source(Instance("torch", "torch.nn.Conv2d", "module", (3, 2), given, (X,)))
    constructed = "torch.nn.Conv2d(3, 2, activation=torch.nn.ReLU(inplace=True), bias=False, dtype=torch.float8_e5m2)"
    assert text.index("torch.manual_seed(0)") < text.index(f"self.inner = {constructed}")


def test_methods_are_called_on_their_first_argument() -> None:
    text = source(Instance("torch", "torch.Tensor.add_", "method", (X, X), {"alpha": 2}))
    assert "return x0.add_(x1, alpha=2)" in text
    text = source(Instance("torch", "torch.Tensor.__radd__", "method", (2.0, X)))
    assert "return torch.Tensor.__radd__(2.0, x0)" in text


def test_constants_are_buffers() -> None:
    recipe = Drawn("bfloat16", (2,))
    text = source(Instance("torch", "torch.cat", "function", ([X, X, recipe],)), constants=True)
    assert "return torch.cat([x0, self.constant0, self.constant1])" in text
    assert text.count("self.register_buffer(") == 2
    assert text.count(").to(torch.bfloat16)") == 1
