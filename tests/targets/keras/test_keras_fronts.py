"""Front ends for Keras: they agree with the library where nothing is wrong, say what ran, and refuse lawfully."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from miscompile.core.outcome import Outcome, Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Array, Tensor
from miscompile.execution.pool import LocalPool
from miscompile.instances.instance import Instance
from miscompile.instances.program import to_case
from miscompile.instances.sequence import in_sequence
from miscompile.instances.values import Drawn, Made
from miscompile.targets.known import known
from miscompile.targets.registry import load_attribute, parse_target
from miscompile.triage.confirm import run_script
from miscompile.triage.library_script import Failure, write_front_script

FRONTS = {
    "xla{via=keras}": (("keras", "jax"), "dot_general"),
    "openvino{via=keras}": (("keras", "openvino"), "numpy.py:matmul"),
    "openvino{via=tensorflow}": (("keras", "openvino", "tensorflow"), "MatMul"),
    "onnxruntime{via=keras}": (("keras", "tensorflow", "tf2onnx", "onnxruntime"), "math.py:MatMul.version_10"),
}
"""Front ends, with the packages that they need and what they say of a dense layer."""

_ALSO = ("keras", "jax")


def _without(target: str) -> str:
    missing = [name for name in (*FRONTS[target][0], *_ALSO) if importlib.util.find_spec(name) is None]
    return f"{' and '.join(missing)} not installed" if missing else ""


fronts = pytest.mark.parametrize(
    "target",
    [
        pytest.param(
            name,
            marks=[
                pytest.mark.compiler,
                pytest.mark.process,
                pytest.mark.skipif(bool(_without(name)), reason=_without(name) or "all is here"),
            ],
        )
        for name in FRONTS
    ],
)

X = Drawn("float32", (2, 3))
IMAGE = Drawn("float32", (1, 6, 7, 2), seed=2)
STEPS = Drawn("float32", (2, 4, 3), seed=3)
DENSE = Instance("keras", "keras.layers.Dense", "module", (4,), {"activation": "tanh"}, (X,))
HEALTHY = (
    DENSE,
    in_sequence(DENSE),
    Instance("keras", "keras.layers.Conv2D", "module", (3, (2, 3)), {"padding": "same", "strides": 2}, (IMAGE,)),
    Instance("keras", "keras.layers.AveragePooling2D", "module", (2,), {}, (IMAGE,)),
    Instance("keras", "keras.layers.Add", "module", (), {}, ([X, Drawn("float32", (2, 3), seed=5)],)),
    Instance(
        "keras",
        "keras.layers.TimeDistributed",
        "module",
        (Made("keras.layers.Dense", (2,)),),
        {},
        (Drawn("float32", (2, 4, 3)),),
    ),
    Instance("keras", "keras.ops.concatenate", "function", ([X, Drawn("float32", (2, 4), seed=1)],), {"axis": 1}),
    Instance("keras", "keras.ops.split", "function", (X, 3), {"axis": 1}),
    Instance("keras", "keras.ops.subtract", "function", (Drawn("float32", (3,)), X)),
    Instance("keras", "keras.activations.gelu", "function", (X,), {"approximate": True}),
)


def outcomes(target: str, instances: tuple[Instance, ...], build: Build) -> list[Outcome]:
    with LocalPool(target) as pool:
        return pool.run([Run(to_case(instance), target, build) for instance in instances])


def arrays(outcome: Outcome) -> list[Array]:
    assert isinstance(outcome, Values), outcome
    return [np.asarray(value.numbers()) for value in outcome.results[0] if value is not None]


@fronts
@pytest.mark.parametrize("level", ["off", "full"])
def test_healthy_operators_agree_with_the_library(target: str, level: str) -> None:
    expected = outcomes("keras", HEALTHY, Build())
    found = outcomes(target, HEALTHY, Build(level=level))
    for instance, right, one in zip(HEALTHY, expected, found, strict=True):
        for want, got in zip(arrays(right), arrays(one), strict=True):
            assert want.dtype == got.dtype, instance.api
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=instance.api)


@fronts
def test_conversion_functions_are_told(target: str) -> None:
    watched, unwatched = (outcomes(target, (DENSE,), Build(observe=observe))[0] for observe in (True, False))
    assert FRONTS[target][1] in watched.observations.passes
    assert unwatched.observations.passes == ()


@fronts
def test_what_keras_makes_no_model_of_is_no_fault_of_the_compiler(target: str) -> None:
    inside = Instance("keras", "keras.ops.reshape", "function", (X, (5, 5)))
    sizes = Instance("keras", "keras.ops.shape", "function", (X,))
    outside = Instance("keras", "keras.saving.load_model", "function", (X,))
    for found in outcomes(target, (sizes, outside), Build()):
        assert isinstance(found, Unsupported)
    assert not isinstance(outcomes(target, (inside,), Build())[0], Values)


@fronts
def test_a_script_shows_a_wrong_result_and_only_that(target: str, tmp_path: Path) -> None:
    (right,) = outcomes("keras", (DENSE,), Build())
    expected = tuple(Tensor("float32", array) for array in arrays(right))
    shifted = tuple(Tensor("float32", value.array + np.float32(0.5)) for value in expected)
    spec = parse_target(target)
    assert spec.front is not None
    tries = [(expected, 0)]
    if load_attribute(spec.front.script).isolated:  # else the library says in the script itself what is right
        tries.append((shifted, 1))
    for values, code in tries:
        text = write_front_script(DENSE, target, Failure("wrong", "run", "a test", "", 0, 0, 1e-4, values), {})
        path = tmp_path / "script.py"
        path.write_text(text)
        result = run_script(path, seconds=200)
        assert result.code == code, result
        assert ("BUG" in result.stdout) is bool(code)


@pytest.mark.parametrize("via", ["keras", "tensorflow"])
def test_refusals_of_openvino_are_strict(via: str) -> None:
    """What a back end says it lacks is a refusal; what breaks inside of it is not."""
    rules = known("openvino", via)
    assert rules.rejection("NotSymbolicError", "TypeError: no symbols") is not None
    assert rules.rejection("AttributeError", "module has no attribute 'cos'") is None
    assert rules.rejection("TypeError", "unsupported operand type(s) for %: 'NoneType' and 'int'") is None
    lacking = rules.rejection("NotImplementedError", "`svd` is not supported with openvino backend")
    assert (lacking is not None) == (via == "keras")
