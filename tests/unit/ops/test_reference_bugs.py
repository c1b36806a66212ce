"""Programs on which onnx's reference evaluator is not to be trusted."""

import math

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from miscompile.core.tensor import Array, tensor
from miscompile.graph.read import read
from miscompile.ops.reference_bugs import is_mistaken

X, W, R = (1, 1, 1), (1, 3, 1), (1, 3, 1)


def model(
    *nodes: onnx.NodeProto, inputs: dict[str, tuple[int, ...]], dtype: int = TensorProto.FLOAT
) -> onnx.ModelProto:
    infos = [helper.make_tensor_value_info(name, dtype, shape) for name, shape in inputs.items()]
    outputs = [helper.make_tensor_value_info("y", dtype, None)]
    graph = helper.make_graph(list(nodes), "g", infos, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def doubted(proto: onnx.ModelProto) -> bool:
    feed = {
        info.name: tensor(
            np.ones(
                [size.dim_value for size in info.type.tensor_type.shape.dim],
                helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type),
            )
        )
        for info in proto.graph.input
    }
    return is_mistaken(read(proto.SerializeToString()), feed)


def gru(**given: object) -> onnx.ModelProto:
    node = helper.make_node("GRU", ["x", "w", "r"], ["y"], hidden_size=1, **given)
    return model(node, inputs={"x": X, "w": W, "r": R})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, False),
        ({"clip": 0.1}, True),
        ({"activations": ["Relu", "Relu"]}, True),
        ({"linear_before_reset": 1}, False),
    ],
)
def test_a_recurrent_layer_is_doubted_for_what_the_evaluator_ignores(given: dict[str, object], expected: bool) -> None:
    assert doubted(gru(**given)) == expected


def test_the_evaluator_still_ignores_the_clip_of_gru() -> None:
    def run(proto: onnx.ModelProto) -> Array:
        feed = {name: np.ones(shape, np.float32) for name, shape in {"x": X, "w": W, "r": R}.items()}
        return np.asarray(ReferenceEvaluator(proto).run(None, feed)[0])

    assert (run(gru()) == run(gru(clip=0.1))).all(), "mended: remove the entry of reference_bugs.py"


def test_a_call_in_a_body_is_looked_at() -> None:
    inner = helper.make_node("MaxPool", ["x"], ["z"], kernel_shape=[2], pads=[1, 1])
    output = helper.make_tensor_value_info("z", TensorProto.FLOAT, None)
    branch = helper.make_graph([inner], "branch", [], [output])
    same = helper.make_graph([helper.make_node("Identity", ["x"], ["z"])], "other", [], [output])
    start = helper.make_node("Constant", [], ["c"], value=helper.make_tensor("c", TensorProto.BOOL, [], [True]))
    test = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=same)
    assert doubted(model(start, test, inputs={"x": (1, 1, 4)}))


def test_the_evaluator_still_never_enters_a_loop_without_a_condition() -> None:
    body = helper.make_graph(
        [helper.make_node("Identity", ["on"], ["go"]), helper.make_node("Add", ["state", "state"], ["next"])],
        "body",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, []),
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state", TensorProto.FLOAT, [1]),
        ],
        [
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, [1]),
        ],
    )
    trips = helper.make_node("Constant", [], ["n"], value=helper.make_tensor("n", TensorProto.INT64, [], [3]))
    proto = model(trips, helper.make_node("Loop", ["n", "", "x"], ["y"], body=body), inputs={"x": (1,)})
    (found,) = ReferenceEvaluator(proto).run(None, {"x": np.ones(1, np.float32)})
    assert found == 1, "mended: remove the entry of reference_bugs.py"
    assert doubted(proto)


@pytest.mark.parametrize(("opset", "expected"), [(15, True), (16, False)])
def test_an_operator_is_doubted_before_the_opset_that_changed_it(opset: int, expected: bool) -> None:
    node = helper.make_node("RoiAlign", ["x", "boxes", "i"], ["y"])
    index = helper.make_node("Constant", [], ["i"], value=helper.make_tensor("i", TensorProto.INT64, [1], [0]))
    proto = model(index, node, inputs={"x": (1, 1, 4, 4), "boxes": (1, 4)})
    proto.opset_import[0].version = opset
    assert doubted(proto) == expected


@pytest.mark.parametrize("form", ["none", "tanh"])
def test_the_evaluator_still_computes_gelu_of_float64_with_constants_of_float32(form: str) -> None:
    node = helper.make_node("Gelu", ["x"], ["y"], approximate=form)
    proto = model(node, inputs={"x": (1,)}, dtype=TensorProto.DOUBLE)
    (found,) = ReferenceEvaluator(proto).run(None, {"x": np.ones(1)})
    exact = {
        "none": 0.5 * (1 + math.erf(math.sqrt(0.5))),
        "tanh": 0.5 * (1 + math.tanh(math.sqrt(2 / math.pi) * 1.044715)),
    }[form]
    assert abs(found[0] - exact) > 1e-10, "mended: remove the entry of reference_bugs.py"
    assert doubted(proto)
    assert not doubted(model(node, inputs={"x": (1,)}))


def test_other_operators_are_trusted() -> None:
    assert not doubted(model(helper.make_node("Relu", ["x"], ["y"]), inputs={"x": X}))
