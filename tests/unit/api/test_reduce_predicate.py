"""Reduction for a predicate of the caller: what is kept, what is asked, and how it ends."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, parser

from miscompile.api.diagnosis import reduce
from miscompile.base.errors import UsageError

MODEL = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 17]>
    g (float[n, 8] x, float[8, 4] w, float[n, 4] unused) => (float[n, 4] y, float[n, 4] z)
    <float[4] bias = {1, 2, 3, 4}> {
        a = MatMul (x, w)  b = Add (a, bias)  c = Relu (b)  d = Sigmoid (c)  e = Mul (d, c)
        y = Tanh (e)
        z = Neg (unused)
    }
""")


def ops(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def has(*wanted: str) -> Callable[[onnx.ModelProto], bool]:
    return lambda model: set(wanted) <= set(ops(model))


@pytest.mark.parametrize("wanted", [("Sigmoid",), ("MatMul",), ("Neg",), ("Relu", "Mul"), ("MatMul", "Tanh")])
def test_only_what_the_predicate_needs_is_left(wanted: tuple[str, ...]) -> None:
    found = reduce(MODEL, has(*wanted))
    assert sorted(ops(found.model)) == sorted(wanted)
    assert found.complete
    assert found.tries > 1
    assert found.inputs == {}
    onnx.checker.check_model(found.model, full_check=True)


def test_a_chain_is_kept_as_a_chain() -> None:
    """A pattern as a compiler's fusion would look for it: a Sigmoid whose operand is multiplied with its result."""

    def swish(model: onnx.ModelProto) -> bool:
        made = {node.output[0]: node for node in model.graph.node}
        for node in model.graph.node:
            for one, other in (node.input, reversed(node.input)) if node.op_type == "Mul" else ():
                inner = made.get(one)
                if inner is not None and inner.op_type == "Sigmoid" and list(inner.input) == [other]:
                    return True
        return False

    found = reduce(MODEL, swish)
    assert ops(found.model) == ["Sigmoid", "Mul"]
    assert len(found.model.graph.input) == 1, "an input stays an input, and none is left over"


def test_sizes_and_values_shrink() -> None:
    def wide(model: onnx.ModelProto) -> bool:
        shapes = (value.type.tensor_type.shape.dim for value in model.graph.input)
        return "MatMul" in ops(model) and any(len(dims) == 2 and dims[1].dim_value >= 3 for dims in shapes)

    found = reduce(MODEL, wide)
    assert ops(found.model) == ["MatMul"]
    sizes = [size.dim_value for value in found.model.graph.input for size in value.type.tensor_type.shape.dim]
    assert max(sizes) == 3, "sizes shrink while the function is true, and 2 is too few"


def test_every_candidate_is_valid() -> None:
    asked: list[onnx.ModelProto] = []

    def needs(model: onnx.ModelProto) -> bool:
        asked.append(model)
        return "Relu" in ops(model)

    reduce(MODEL, needs)
    for model in asked:
        onnx.checker.check_model(model, full_check=True)
    texts = [model.SerializeToString() for model in asked]
    assert len(set(texts)) == len(texts), "no model is asked about twice"


def test_an_invalid_model_is_reduced_to_an_invalid_one() -> None:
    model = onnx.ModelProto()
    model.CopyFrom(MODEL)
    model.graph.node.append(helper.make_node("NoSuchOperator", ["y"], ["q"]))
    model.graph.output.append(helper.make_tensor_value_info("q", TensorProto.FLOAT, None))
    found = reduce(model, has("NoSuchOperator"))
    assert ops(found.model) == ["NoSuchOperator"]


def test_custom_operators_and_functions_are_kept() -> None:
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["": 17, "mine": 1]>
        g (float[2] x) => (float[2] y) { a = Neg (x) b = mine.Odd (a) c = mine.twice (b) y = Exp (c) }
        <domain: "mine", opset_import: ["": 17]> twice (p) => (q) { q = Add (p, p) }
    """)
    assert ops(reduce(model, has("Odd")).model) == ["Odd"]
    found = reduce(model, lambda one: any(f.name == "twice" for f in one.functions))
    assert ops(found.model) == ["twice"]


def test_models_come_as_files_and_bytes(tmp_path: Path) -> None:
    onnx.save(MODEL, tmp_path / "model.onnx")
    for subject in (MODEL.SerializeToString(), tmp_path / "model.onnx", str(tmp_path / "model.onnx")):
        assert ops(reduce(subject, has("Neg")).model) == ["Neg"]


def test_it_is_repeatable() -> None:
    first, second = (reduce(MODEL, has("Add")) for _ in range(2))
    assert first.model == second.model
    assert (first.tries, first.steps) == (second.tries, second.steps)


def test_limits_end_it_with_the_best_so_far() -> None:
    found = reduce(MODEL, has("Sigmoid"), tries=3)
    assert not found.complete
    assert found.tries <= 3
    assert has("Sigmoid")(found.model)
    assert reduce(MODEL, has("Sigmoid"), time=0.0).tries <= 2


def test_a_function_that_is_false_for_the_model_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="not true for the model itself"):
        reduce(MODEL, has("Conv"))


def test_its_exceptions_are_raised() -> None:
    def broken(model: onnx.ModelProto) -> bool:
        if len(model.graph.node) < 7:
            raise LookupError("my own")
        return True

    with pytest.raises(LookupError, match="my own"):
        reduce(MODEL, broken)


def test_what_shows_the_bug_must_be_said() -> None:
    with pytest.raises(UsageError, match="name a target that shows the bug, or give a function"):
        reduce(MODEL, None)  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="name a target"):
        reduce(MODEL, ())


def test_constants_become_plain() -> None:
    weights = np.random.default_rng(0).standard_normal((3, 3)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 3])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def constant(one: onnx.ModelProto) -> bool:
        return bool(one.graph.initializer) and ops(one) == ["MatMul"] and len(one.graph.input) == 1

    found: Any = reduce(model, constant)
    (weight,) = found.model.graph.initializer
    assert not onnx.numpy_helper.to_array(weight).any()
