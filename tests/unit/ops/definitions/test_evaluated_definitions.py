"""Calls that onnx's own evaluator computes wrongly, or not at all, and that ours computes as ONNX Runtime does."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from miscompile.core.tensor import Array
from miscompile.ops.definitions.evaluated_call import EvaluatedCall
from miscompile.ops.definitions.evaluator import evaluator
from miscompile.ops.definitions.padding import pad

RANDOM = np.random.default_rng(0)


def floats(*shape: int) -> Array:
    return RANDOM.normal(size=shape).astype(np.float32)


def model(op: str, operands: Sequence[Array], opset: int, results: int = 1, **attributes: Any) -> onnx.ModelProto:
    names = [f"x{place}" for place in range(len(operands))]
    node = helper.make_node(op, names, [f"y{place}" for place in range(results)], **attributes)
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
        for name, one in zip(names, operands, strict=True)
    ]
    untyped = helper.make_graph([node], "g", infos, [helper.make_empty_tensor_value_info(name) for name in node.output])
    made = helper.make_model(untyped, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    inferred = onnx.shape_inference.infer_shapes(made, strict_mode=True)
    onnx.checker.check_model(inferred)
    return inferred


def ours(made: onnx.ModelProto, operands: Sequence[Array]) -> list[Array]:
    found = evaluator(made).run(None, {f"x{place}": one for place, one in enumerate(operands)})
    return [np.asarray(one) for one in found]


def theirs(made: onnx.ModelProto, feed: Mapping[str, Array]) -> list[Array]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [np.asarray(one) for one in session.run(None, dict(feed))]


def agree(one: Sequence[Array], other: Sequence[Array], tolerance: float = 1e-5) -> None:
    for mine, its in zip(one, other, strict=True):
        assert (mine.dtype, mine.shape) == (its.dtype, its.shape)
        np.testing.assert_allclose(mine.astype(float), its.astype(float), rtol=tolerance, atol=tolerance)


CALLS: list[tuple[str, list[Array], int, int, dict[str, Any]]] = [
    ("BatchNormalization", [floats(2, 3, 4), floats(3), floats(3), floats(3), floats(3) ** 2], 9, 1, {}),
    ("BatchNormalization", [floats(2, 3), floats(3), floats(3), floats(3), floats(3) ** 2], 7, 1, {"epsilon": 0.5}),
    ("BatchNormalization", [floats(2, 3, 4, 2), floats(3), floats(3), floats(3), floats(3) ** 2], 15, 1, {}),
    ("Softmax", [floats(2, 3, 4)], 11, 1, {}),
    ("Softmax", [floats(2, 3, 4)], 12, 1, {"axis": -2}),
    ("LogSoftmax", [floats(2, 3, 4)], 11, 1, {"axis": 0}),
    ("Hardmax", [floats(2, 3, 4)], 11, 1, {}),
    ("Dropout", [floats(2, 3)], 11, 1, {"ratio": 0.7}),
    ("LRN", [floats(1, 5, 2, 2)], 13, 1, {"size": 3, "alpha": 0.5}),
    ("LRN", [floats(4, 2, 2, 2)], 13, 1, {"size": 5, "alpha": 0.5, "bias": 2.0}),
    ("LpNormalization", [floats(2, 3)], 13, 1, {"p": 1, "axis": 0}),
    ("LpNormalization", [floats(2, 3)], 13, 1, {"p": 2}),
    ("LayerNormalization", [floats(2, 3, 4), floats(3, 4), floats(3, 4)], 17, 3, {"axis": 1}),
    ("Pad", [floats(3, 4)], 2, 1, {"pads": [-1, 2, 0, -3], "value": 0.5}),
    ("Pad", [floats(3, 4), np.array([-1, 2, 0, -3])], 11, 1, {}),
    ("Pad", [floats(3, 4), np.array([0, -2, 1, -1]), np.array(2.5, np.float32)], 13, 1, {}),
    ("OneHot", [np.array([-1, 0, 5, 2]), np.array(3), np.array([1e8, 1.0], np.float32)], 13, 1, {}),
    ("OneHot", [np.array([[-1, 0], [5, 2]]), np.array(3), np.array([0.1, 0.7], np.float32)], 13, 1, {"axis": 0}),
    ("Unique", [np.array([3, 1, 3, 2])], 13, 1, {"sorted": 0}),
    ("Unique", [np.array([[3, 1], [0, 1], [3, 1]])], 13, 4, {"sorted": 0, "axis": 0}),
    ("Unique", [np.array([[3, 1, 3], [0, 1, 0]])], 13, 4, {"sorted": 0, "axis": 1}),
    ("Unique", [np.array([[3, 1, 3], [0, 1, 0]])], 13, 4, {}),
    ("Shape", [floats(2, 3, 4)], 15, 1, {"start": 1, "end": -1}),
    ("Shape", [floats(2, 3, 4)], 15, 1, {"start": -2}),
    ("Shrink", [np.array([-(2**60), -2, 0, 2, 2**60 + 1])], 13, 1, {"bias": 1.0, "lambd": 1.0}),
    ("ReduceSumSquare", [np.array([[1, 2], [3, 4]], np.int32)], 13, 1, {"axes": [1], "keepdims": 0}),
    ("ReduceSumSquare", [np.array([[700, 2], [3, 4]], np.int32)], 13, 1, {}),
    ("ReduceLogSumExp", [floats(2, 3, 4)], 13, 1, {"axes": [0, 2]}),
    ("ReduceLogSumExp", [np.array([[1e4, 1.0], [-1e4, -1e4]], np.float32)], 13, 1, {"axes": [-1], "keepdims": 0}),
    ("ReduceLogSumExp", [np.array([[-np.inf, 1.0], [-np.inf, -np.inf]], np.float32)], 13, 1, {"axes": [1]}),
    ("ReduceLogSumExp", [np.array([[np.inf, 1.0], [np.inf, np.nan]], np.float32)], 13, 1, {"axes": [1]}),
    ("LeakyRelu", [np.array([np.inf, -np.inf, np.nan, 0, -2], np.float32)], 16, 1, {"alpha": 0.5}),
    ("PRelu", [floats(2, 3, 4), floats(3, 1)], 16, 1, {}),
    ("PRelu", [np.array([0, np.inf, -1], np.float32), np.array([np.nan, np.nan, 3], np.float32)], 16, 1, {}),
    ("Erf", [floats(5)], 13, 1, {}),
    ("Det", [floats(2, 3, 3)], 13, 1, {}),
    ("AffineGrid", [floats(2, 2, 3), np.array([2, 1, 3, 4])], 20, 1, {}),
    ("AffineGrid", [floats(1, 3, 4), np.array([1, 1, 3, 4, 2])], 20, 1, {"align_corners": 1}),
]


@pytest.mark.parametrize(("op", "operands", "opset", "results", "attributes"), CALLS, ids=lambda one: str(one)[:30])
def test_a_call_is_computed_as_by_onnxruntime(
    op: str, operands: list[Array], opset: int, results: int, attributes: dict[str, Any]
) -> None:
    made = model(op, operands, opset, results, **attributes)
    agree(ours(made, operands), theirs(made, {f"x{place}": one for place, one in enumerate(operands)}))


def test_pads_belong_to_the_axes_that_are_given() -> None:
    operands = (np.arange(6).reshape(2, 3), np.array([-3, 1]), np.array(7), np.array([-1]))
    found = pad(EvaluatedCall(operands, {}, 18, (True,)))
    assert found is not None
    assert found[0].tolist() == [[7], [7]]


@pytest.mark.parametrize(
    ("pads", "axes"), [([-1, 0], None), ([-1, 0, 0, 0], [1]), ([-1, 0, 0, 0], [1, 1]), ([-1, 0], [2]), ([-1] * 5, None)]
)
def test_pads_that_do_not_fit_the_axes_are_left_to_onnx(pads: list[int], axes: list[int] | None) -> None:
    given = (np.zeros((3, 4)), np.array(pads), None, None if axes is None else np.array(axes))
    assert pad(EvaluatedCall(given, {}, 18, (True,))) is None


@pytest.mark.parametrize(("value", "wanted"), [(None, ["bb", "c", ""]), (np.array("longer"), ["bb", "c", "longer"])])
def test_text_is_padded_with_whole_text(value: Array | None, wanted: list[str]) -> None:
    found = pad(EvaluatedCall((np.array(["a", "bb", "c"]), np.array([-1, 1]), value), {}, 13, (True,)))
    assert found is not None
    assert found[0].tolist() == wanted


def test_pads_that_cut_off_more_than_there_is_are_left_to_onnx() -> None:
    operands = [floats(2), np.array([-3, 2])]
    with pytest.raises(ValueError, match="negative"):
        ours(model("Pad", operands, 13), operands)


@pytest.mark.parametrize("end", [-9, -4, -3, 0, 2, 9])
def test_an_end_of_shape_is_clamped(end: int) -> None:
    operands = [floats(2, 3, 4)]
    (found,) = ours(model("Shape", operands, 19, end=end), operands)
    assert found.tolist() == [2, 3, 4][: max(0, end + 3 if end < 0 else end)]


@pytest.mark.parametrize("attributes", [{}, {"alpha": 2.0, "beta": -1.0}, {"transA": 1, "transB": 1}])
def test_integers_of_gemm_are_exact(attributes: dict[str, Any]) -> None:
    a, b, c = np.array([[1, 2], [3, 4]]), np.array([[1, 0], [0, 1]]), np.array([-(2**62), 2**62 + 1])
    (found,) = ours(model("Gemm", [a, b, c], 13, **attributes), [a, b, c])
    left, right = (a.T, b.T) if "transA" in attributes else (a, b)
    assert (found == int(attributes.get("alpha", 1)) * (left @ right) + int(attributes.get("beta", 1)) * c).all()


def test_double_precision_is_kept() -> None:
    x = np.array([0.1, 0.2])
    assert ours(model("Erf", [x], 13), [x])[0] == pytest.approx([math.erf(0.1), math.erf(0.2)], rel=1e-14)
    theta = RANDOM.normal(size=(1, 2, 3))
    assert (
        ours(model("AffineGrid", [theta, np.array([1, 1, 2, 2])], 20), [theta, np.array([1, 1, 2, 2])])[0].dtype
        == float
    )


def test_the_statistics_of_a_layer_have_the_type_of_the_stash() -> None:
    operands = [floats(2, 3).astype(np.float16), floats(3).astype(np.float16)]
    found = ours(model("LayerNormalization", operands, 17, 3), operands)
    assert [one.dtype for one in found] == [np.float16, np.float32, np.float32]


def test_small_integers_wrap_where_they_become_other_small_ones() -> None:
    cast = helper.make_node("Cast", ["x0"], ["y0"], to=TensorProto.UINT4)
    wide = helper.make_node("Cast", ["y0"], ["y1"], to=TensorProto.INT32)
    small = helper.make_node("Cast", ["x"], ["x0"], to=TensorProto.INT4)
    graph = helper.make_graph(
        [small, cast, wide],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.INT32, [3])],
        [helper.make_tensor_value_info("y1", TensorProto.INT32, [3])],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    (found,) = evaluator(made).run(None, {"x": np.array([-1, 3, -8], np.int32)})
    assert found.tolist() == [15, 3, 8]


@pytest.mark.parametrize("axes", [np.array([-1, 0]), np.array(1)])
def test_axes_of_a_reduction_may_be_an_operand(axes: Array) -> None:
    x = floats(2, 3, 4)
    node = helper.make_node("ReduceLogSumExp", ["x", "axes"], ["y"], keepdims=0)
    infos = [helper.make_empty_tensor_value_info(name) for name in ("x", "axes", "y")]
    graph = helper.make_graph([node], "g", infos[:2], infos[2:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    (found,) = evaluator(made).run(None, {"x": x, "axes": axes})
    wanted = np.log(np.exp(x.astype(float)).sum(tuple(axes.reshape(-1))))
    # The logarithm of a sum near 1 is near 0, and off by the last place of that sum.
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=2e-7)


def quantised(*shape: int) -> Array:
    return RANDOM.integers(0, 256, shape).astype(np.uint8)


@pytest.mark.parametrize("shape", [(2, 4, 7), (1, 4, 5, 6), (1, 4, 3, 4, 5)])
@pytest.mark.parametrize("attributes", [{}, {"group": 2}, {"auto_pad": "SAME_LOWER", "group": 2}])
def test_a_quantised_convolution_has_a_scale_for_each_filter(
    shape: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    filters = RANDOM.integers(-128, 128, (6, 4 // attributes.get("group", 1), *(2 for _ in shape[2:]))).astype(np.int8)
    scales = RANDOM.random(6).astype(np.float32) + np.float32(0.1)
    operands = [
        quantised(*shape), np.array(0.5, np.float32), np.array(100, np.uint8), filters, scales, np.zeros(6, np.int8),
        np.array(33.3, np.float32), np.array(90, np.uint8), RANDOM.integers(-999, 999, 6).astype(np.int32),
    ]  # fmt: skip
    made = model("QLinearConv", operands, 13, **attributes)
    agree(ours(made, operands), theirs(made, {f"x{place}": one for place, one in enumerate(operands)}))


def loop(turns: int, *, condition: bool) -> onnx.ModelProto:
    """Return a Loop that adds one to a state, and gives a scalar and a matrix in each turn."""
    scalar = helper.make_node("ReduceSum", ["state"], ["row"], keepdims=0)
    nodes = [
        helper.make_node("Identity", ["on"], ["go"]),
        helper.make_node("Add", ["state", "step"], ["next"]),
        scalar,
        helper.make_node("Identity", ["next"], ["matrix"]),
    ]
    kind = TensorProto.FLOAT
    body = helper.make_graph(
        nodes,
        "body",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, []),
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state", kind, [2, 1]),
        ],
        [
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", kind, [2, 1]),
            helper.make_tensor_value_info("row", kind, []),
            helper.make_tensor_value_info("matrix", kind, [2, 1]),
        ],
    )
    names = ["n", "c" if condition else "", "x"]
    graph = helper.make_graph(
        [helper.make_node("Loop", names, ["last", "rows", "matrices"], body=body)],
        "g",
        [helper.make_tensor_value_info("x", kind, [2, 1]), helper.make_tensor_value_info("step", kind, [])],
        [helper.make_empty_tensor_value_info(name) for name in ("last", "rows", "matrices")],
        [
            helper.make_tensor("n", TensorProto.INT64, [], [turns]),
            *([helper.make_tensor("c", TensorProto.BOOL, [], [True])] if condition else []),
        ],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return onnx.shape_inference.infer_shapes(made)


@pytest.mark.parametrize("turns", [0, 1, 3])
@pytest.mark.parametrize("condition", [True, False])
def test_a_loop_joins_what_its_turns_give_along_a_new_axis(turns: int, condition: bool) -> None:
    made = loop(turns, condition=condition)
    feed = {"x": floats(2, 1), "step": np.array(1, np.float32)}
    agree([np.asarray(one) for one in evaluator(made).run(None, feed)], theirs(made, feed))


def test_definitions_hold_inside_of_functions() -> None:
    node = helper.make_node("LRN", ["a"], ["b"], size=3, alpha=1.0)
    function = helper.make_function("local", "F", ["a"], ["b"], [node], [helper.make_opsetid("", 17)])
    x = floats(1, 4, 2, 1)
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, x.shape) for name in "xy"]
    graph = helper.make_graph([helper.make_node("F", ["x"], ["y"], domain="local")], "g", infos[:1], infos[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    made = helper.make_model(graph, functions=[function], opset_imports=opsets, ir_version=8)
    agree([np.asarray(one) for one in evaluator(made).run(None, {"x": x})], theirs(made, {"x": x}))


@pytest.mark.parametrize(
    ("op", "operands", "opset", "attributes"),
    [
        ("MaxPool", [floats(1, 1, 3)], 13, {"kernel_shape": [5]}),
        ("AveragePool", [floats(1, 1, 3)], 13, {"kernel_shape": [2, 2]}),
        ("ConvTranspose", [floats(1, 1, 2), floats(1, 1, 2)], 13, {"kernel_shape": [3]}),
        ("Softmax", [floats(2, 3)], 11, {"axis": 7}),
        ("Gemm", [np.ones((3, 2), np.int64), np.ones((2, 2), np.int64), np.ones((3, 3, 2), np.int64)], 13, {}),
    ],
    ids=lambda one: str(one)[:20],
)
def test_invalid_calls_are_refused(op: str, operands: list[Array], opset: int, attributes: dict[str, Any]) -> None:
    names = [f"x{place}" for place in range(len(operands))]
    node = helper.make_node(op, names, ["y"], **attributes)
    infos = [helper.make_empty_tensor_value_info(name) for name in (*names, "y")]
    graph = helper.make_graph([node], "g", infos[:-1], infos[-1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    with pytest.raises(ValueError, match=r"."):
        ours(made, operands)
