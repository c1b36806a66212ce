"""The assertion on people's own models, and the pytest marker."""

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from miscompile.base.errors import NothingTested, UsageError
from miscompile.testing.alike import assert_compiles_alike

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.process


def a_model(*nodes: onnx.NodeProto) -> onnx.ModelProto:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in ("x", "y")]
    graph = helper.make_graph(list(nodes), "g", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


RIGHT = a_model(helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["y"]))
SUB = a_model(helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Sub", ["a", "x"], ["y"]))


def test_a_sound_compiler_passes(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(RIGHT, path)
    for model in (RIGHT, RIGHT.SerializeToString(), path, str(path)):
        assert_compiles_alike(model, "toy", budget=2)


def test_a_wrong_pass_is_named() -> None:
    assert_compiles_alike(SUB, "toy", budget=2)
    with pytest.raises(AssertionError, match="OperandOrdering"):
        assert_compiles_alike(SUB, "toy{bugs=sub_commutes}", budget=4)


def test_a_model_that_the_compiler_does_not_take_is_no_pass() -> None:
    model = a_model(helper.make_node("Mine", ["x"], ["y"], domain="mine"))
    with pytest.raises(NothingTested, match="none of 2 tests"):
        assert_compiles_alike(model, "toy", budget=2)


def test_things_that_are_no_model() -> None:
    with pytest.raises(UsageError, match="int is no ONNX model"):
        assert_compiles_alike(3)
    with pytest.raises(UsageError, match="budget"):
        assert_compiles_alike(RIGHT, budget=0)


def test_the_marker_checks_before_the_body(pytester: pytest.Pytester) -> None:
    onnx.save(RIGHT, pytester.path / "right.onnx")
    (pytester.path / "broken.onnx").write_text("no model")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.miscompile(model="right.onnx", targets="toy", budget=1)
        def test_right():
            pass

        @pytest.mark.miscompile(model="broken.onnx", targets="toy", budget=1)
        def test_broken():
            raise SystemError("the body is not reached")

        def test_without():
            pass
        """
    )
    result = pytester.runpytest_subprocess("--strict-markers", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, failed=1)
    assert "the body is not reached" not in result.stdout.str().replace('raise SystemError("the body', "")
