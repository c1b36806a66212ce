"""Optimisers of ONNX models as targets: the contract, the checks of their results, and their switches."""

from importlib.util import find_spec

import numpy as np
import onnx
import pytest
from onnx import parser

from miscompile.execution.conformance import check_target
from miscompile.execution.pool import LocalPool
from miscompile.targets.optimisers import execution
from miscompile.targets.registry import parse_target

pytestmark = [pytest.mark.compiler, pytest.mark.process]

PACKAGES = {
    "onnxoptimizer": "onnxoptimizer",
    "onnxsim": "onnxsim",
    "onnxslim": "onnxslim",
    "onnxscript": "onnxscript",
    "orttransformers": "sympy",
    "quantpreprocess": "sympy",
    "versionconverter": "onnx",
    "float16converter": "onnxconverter_common",
}
"""The package without which a target is skipped."""

PLAIN = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
    g (float[N] x, float[N] z) => (float[N] y) { y = Add(x, z) }""")


def changed(text: str) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}')


FAULTY = pytest.mark.xfail(
    strict=True, reason="onnxconverter-common gives two casts one name where an input of the model is an output as well"
)
KEEPING = sorted(PACKAGES.keys() - {"float16converter"})


@pytest.mark.parametrize(
    "target", [*KEEPING, "onnxoptimizer{executor=reference}", pytest.param("float16converter", marks=FAULTY)]
)
def test_an_optimiser_keeps_the_contract(target: str) -> None:
    if find_spec(PACKAGES[parse_target(target).about.name]) is None:
        pytest.skip(f"the package of {target} is not installed")
    check_target(target, LocalPool)


@pytest.mark.parametrize(
    "text",
    [
        "(float[N] v, float[N] z) => (float[N] y) { y = Add(v, z) }",  # a renamed input
        "(float[N] z, float[N] x) => (float[N] y) { y = Add(x, z) }",  # another order
        "(float[N] x) => (float[N] y) { y = Add(x, x) }",  # a lost input
        "(float[N] x, float[N] z) => (float[N] w) { w = Add(x, z) }",  # a renamed output
        "(double[N] x, double[N] z) => (double[N] y) { y = Add(x, z) }",  # another type
        "(float[N] x, float[N] z) => (float[N] y) { y = Add(x, nowhere) }",  # no valid model
    ],
)
def test_a_broken_model_is_refused(text: str) -> None:
    with pytest.raises(execution.BrokenModelError):
        execution.optimised(PLAIN.SerializeToString(), lambda _: changed(text).SerializeToString())


def test_an_optimiser_may_drop_inputs_where_that_is_its_design() -> None:
    fewer = changed("(float[N] x) => (float[N] y) { y = Add(x, x) }").SerializeToString()
    assert execution.optimised(PLAIN.SerializeToString(), lambda _: fewer, drops_inputs=True) == fewer


def test_an_original_that_the_checker_refuses_allows_a_result_that_it_refuses() -> None:
    loose = changed("(float[N] x, float[N] z) => (float[N] y) { y = Add(x, nowhere) }").SerializeToString()
    assert execution.optimised(loose, lambda model: model) == loose


def test_sizes_must_fit_the_declared_types() -> None:
    execution.require_sizes(PLAIN, {"x": (3,), "z": (3,), "y": (3,)})
    for shapes in ({"x": (3,), "y": (4,)}, {"y": (3, 1)}):
        with pytest.raises(execution.BrokenModelError):
            execution.require_sizes(PLAIN, shapes)
    with pytest.raises(execution.BrokenModelError):
        execution.require_sizes(changed("(float[2] x) => (float[2] y) { y = Relu(x) }"), {"x": (2,), "y": (3,)})


def test_both_executors_compute_the_same() -> None:
    model = changed("(float[N] x) => (float[N] y) { y = Relu(x) }").SerializeToString()
    feed = {"x": np.array([-1, 2], np.float32)}
    found = execution.start_plain(model).run(["y"], feed, None)
    (other,) = execution.evaluate(model, feed)
    assert other is not None
    np.testing.assert_array_equal(found[0], other)
