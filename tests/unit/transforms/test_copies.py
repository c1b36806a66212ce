"""Copies of a model in one model are valid, keep the signature, and depend on each other as the pattern says."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from miscompile.base.errors import SpecError
from miscompile.base.specs import Spec
from miscompile.core.case import Case
from miscompile.core.tensor import tensor
from miscompile.graph.copies import DEEPEST, PATTERNS, repeated
from miscompile.graph.emit import to_program
from miscompile.graph.read import read
from miscompile.transforms.catalogue import present
from miscompile.transforms.copies import Copies

X = np.array([1.0, 2.0, 3.0], np.float32)


def doubling() -> onnx.ModelProto:
    """A model that doubles its input, with a constant of its own and a body that captures it."""
    then = helper.make_graph(
        [helper.make_node("Mul", ["x", "two"], ["t"])], "then", [], [helper.make_tensor_value_info("t", 1, [3])]
    )
    other = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["e"])], "other", [], [helper.make_tensor_value_info("e", 1, [3])]
    )
    graph = helper.make_graph(
        [helper.make_node("If", ["yes"], ["y"], then_branch=then, else_branch=other)],
        "g",
        [helper.make_tensor_value_info("x", 1, [3])],
        [helper.make_tensor_value_info("y", 1, [3])],
        [helper.make_tensor("two", 1, [], [2.0]), helper.make_tensor("yes", TensorProto.BOOL, [], [True])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def summing() -> onnx.ModelProto:
    """A model whose output does not fit its input."""
    graph = helper.make_graph(
        [helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0)],
        "g",
        [helper.make_tensor_value_info("x", 1, [3])],
        [helper.make_tensor_value_info("s", 1, [])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def result(model: onnx.ModelProto) -> np.ndarray:
    onnx.checker.check_model(model, full_check=True)
    return np.asarray(ReferenceEvaluator(model).run(None, {"x": X})[0])


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("copies", [1, 2, 5, DEEPEST])
def test_copies_are_valid_models(pattern: str, copies: int) -> None:
    for model in (doubling(), summing()):
        made = repeated(model, pattern, copies)
        onnx.checker.check_model(made, full_check=True)
        assert [value.name for value in made.graph.input] == [value.name for value in model.graph.input]
        assert [value.name for value in made.graph.output] == [value.name for value in model.graph.output]


def test_a_chain_and_a_nest_feed_each_copy_with_the_one_before() -> None:
    for pattern in ("chain", "nest"):
        np.testing.assert_array_equal(result(repeated(doubling(), pattern, 5)), 32 * X)
    np.testing.assert_array_equal(result(repeated(summing(), "chain", 2)), np.float32(6 + 3 * 6))


def test_a_fan_adds_the_copies_up() -> None:
    moved = sum(2 * (X + np.float32(number / 64)) for number in range(4))
    np.testing.assert_array_equal(result(repeated(doubling(), "fan", 4)), moved)


def test_a_model_without_floats_stays_as_it_is() -> None:
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.INT32, [3])],
        [helper.make_tensor_value_info("y", TensorProto.INT32, [3])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(ValueError, match="floating-point"):
        repeated(model, "chain", 2)
    case = Case(to_program(read(model)), ((tensor(np.zeros(3), "int32"),),))
    (share,) = present(case, Spec("copies"))
    assert share.case is case


def test_the_transform_takes_known_patterns_only() -> None:
    case = Case(to_program(read(doubling())), ((tensor(X, "float32"),),))
    (share,) = present(case, Spec("copies").with_options(pattern="fan", n="3"))
    assert share.case.program.inputs == case.program.inputs
    assert len(read(share.case.program.payload).graph.nodes) > 3
    with pytest.raises(SpecError):
        Copies("ring", 2)
    with pytest.raises(SpecError):
        Copies("chain", 0)
