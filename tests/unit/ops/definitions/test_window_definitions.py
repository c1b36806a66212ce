"""Our definitions of pooling, ConvTranspose and RoiAlign, against ONNX Runtime and against values from their pages."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from miscompile.core.tensor import Array
from miscompile.ops.definitions.evaluated_call import Definition, EvaluatedCall
from miscompile.ops.definitions.pooling import (
    average_pool,
    global_average_pool,
    global_lp_pool,
    global_max_pool,
    lp_pool,
    max_pool,
)
from miscompile.ops.definitions.roi_align import roi_align
from miscompile.ops.definitions.transposed_convolution import transposed_convolution

Attributes = dict[str, Any]

POOLING: Mapping[str, Definition] = {"AveragePool": average_pool, "LpPool": lp_pool, "MaxPool": max_pool}
GLOBAL: Mapping[str, Definition] = {"GlobalAveragePool": global_average_pool, "GlobalMaxPool": global_max_pool}
NEWER = {
    ("AveragePool", "ceil_mode"): 10,
    ("AveragePool", "dilations"): 19,
    ("LpPool", "ceil_mode"): 18,
    ("LpPool", "dilations"): 18,
    ("MaxPool", "ceil_mode"): 10,
    ("MaxPool", "dilations"): 10,
}
"""The operator sets that brought attributes."""


def model(op: str, opset: int, operands: Sequence[Array], attributes: Attributes, results: int) -> onnx.ModelProto:
    inputs = [
        helper.make_tensor_value_info(f"x{place}", helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
        for place, one in enumerate(operands)
    ]
    kinds = [inputs[0].type.tensor_type.elem_type, TensorProto.INT64][:results]
    outputs = [helper.make_tensor_value_info(f"y{place}", kind, None) for place, kind in enumerate(kinds)]
    node = helper.make_node(op, [one.name for one in inputs], [one.name for one in outputs], **attributes)
    graph = helper.make_graph([node], "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def runtime(op: str, opset: int, operands: Sequence[Array], attributes: Attributes, results: int = 1) -> list[Array]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    made = model(op, opset, operands, attributes, results).SerializeToString()
    session = onnxruntime.InferenceSession(made, options, providers=["CPUExecutionProvider"])
    feed = {f"x{place}": one for place, one in enumerate(operands)}
    return [np.asarray(one) for one in session.run(None, feed)]


def ours(definition: Definition, opset: int, operands: Sequence[Array], attributes: Attributes) -> list[Array]:
    found = definition(EvaluatedCall(tuple(operands), attributes, opset, (True, True)))
    assert found is not None
    return [one for one in found if one is not None]


def pooled(definition: Definition, x: Any, opset: int = 22, **attributes: Any) -> Any:
    """Return the first result for one image with one channel, as a list."""
    operand = np.asarray(x, dtype=np.float32)[None, None]
    return ours(definition, opset, [operand], attributes)[0][0, 0].tolist()


def assert_same(found: Sequence[Array], expected: Sequence[Array], about: object) -> None:
    for mine, other in zip(found, expected, strict=False):  # Indices may be left out
        assert (mine.dtype, mine.shape) == (other.dtype, other.shape), about
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-4, err_msg=str(about))


def window(chance: random.Random, rank: int) -> Attributes:
    """Draw the attributes of a window that slides over `rank` axes."""
    kernel = [chance.randint(1, 4) for _ in range(rank)]
    found: Attributes = {"kernel_shape": kernel}
    if chance.random() < 0.7:
        found["strides"] = [chance.randint(1, 3) for _ in range(rank)]
    if chance.random() < 0.5:
        found["dilations"] = [chance.randint(1, 3) for _ in range(rank)]
    if (auto_pad := chance.choice(("", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"))) != "":
        found["auto_pad"] = auto_pad
    if auto_pad in ("", "NOTSET") and chance.random() < 0.8:
        found["pads"] = [chance.randint(0, size - 1) for size in kernel * 2]
    return found


def is_otherwise(spatial: Sequence[int], attributes: Attributes) -> bool:
    """Tell whether ONNX Runtime pools otherwise than the page says; our values for these are below."""
    rank, auto_pad = len(spatial), attributes.get("auto_pad", "NOTSET")
    strides, dilations = attributes.get("strides", [1] * rank), attributes.get("dilations", [1] * rank)
    pads, kernel = attributes.get("pads", [0] * (2 * rank)), attributes["kernel_shape"]
    for axis, size in enumerate(spatial):
        extent = (kernel[axis] - 1) * dilations[axis] + 1
        if auto_pad.startswith("SAME"):
            # It ignores dilations for the padding of SAME, and begins behind the first element with strides that are
            # larger than the extent, or refuses them.
            if dilations[axis] > 1 or (-(-size // strides[axis]) - 1) * strides[axis] + extent < size:
                return True
        elif size + pads[axis] + pads[axis + rank] < extent:
            return True  # it refuses a window that does not fit, or makes one result
    return auto_pad == "VALID" and "ceil_mode" in attributes  # it adds windows that the page does not


def pooling_call(chance: random.Random, op: str, opset: int) -> tuple[Array, Attributes, int]:
    """Draw X, attributes and the number of results."""
    rank = chance.choice((1, 2, 2, 3))
    shape = (chance.choice((0, 1, 2, 2)), chance.randint(1, 3), *(chance.randint(1, 7) for _ in range(rank)))
    found, results = window(chance, rank), 1
    if chance.random() < 0.5:
        found["ceil_mode"] = 1
    if op == "AveragePool" and chance.random() < 0.5:
        found["count_include_pad"] = 1
    if op == "LpPool" and chance.random() < 0.7:
        found["p"] = chance.randint(1, 4)
    numbers = np.random.default_rng(chance.randrange(2**32))
    x = numbers.standard_normal(shape).astype(np.float32)
    if op == "MaxPool":
        results = chance.choice((1, 2))
        if results == 2 and chance.random() < 0.5:
            found["storage_order"] = 1
        x = np.round(x) if chance.random() < 0.5 else x  # equal elements
        if opset >= 12 and chance.random() < 0.4:
            small = numbers.integers(0, 9, shape)
            x = (small - 5).astype(np.int8) if chance.random() < 0.5 else small.astype(np.uint8)
    return x, {name: value for name, value in found.items() if NEWER.get((op, name), 0) <= opset}, results


@pytest.mark.parametrize("opset", [8, 10, 11, 12, 18, 19, 22])
@pytest.mark.parametrize("op", sorted(POOLING))
def test_pooling_is_that_of_onnxruntime(op: str, opset: int) -> None:
    chance, compared = random.Random(opset), 0
    while compared < 80:
        x, attributes, results = pooling_call(chance, op, opset)
        try:
            found = ours(POOLING[op], opset, [x], attributes)
        except ValueError:
            continue  # no window fits: ONNX Runtime refuses some of these calls, and makes windows in others
        # ONNX Runtime gives zero or the lowest finite number for padding only, for which the page has no value.
        if is_otherwise(x.shape[2:], attributes) or not all(np.isfinite(found[0]).flat):
            continue
        assert_same(found, runtime(op, opset, [x], attributes, results), (x.shape, attributes))
        compared += 1


def transposed_call(chance: random.Random) -> tuple[list[Array], Attributes]:
    rank, group = chance.choice((1, 2, 2, 3)), chance.choice((1, 1, 2, 4))
    spatial, features = [chance.randint(1, 6) for _ in range(rank)], chance.randint(1, 3)
    found = window(chance, rank)
    kernel = found["kernel_shape"] if chance.random() < 0.5 else found.pop("kernel_shape")
    numbers = np.random.default_rng(chance.randrange(2**32))
    shapes: list[tuple[int, ...]] = [(chance.randint(0, 2), 4, *spatial), (4, features, *kernel)]
    shapes += [(group * features,)] if chance.random() < 0.5 else []
    strides, dilations = found.get("strides", [1] * rank), found.get("dilations", [1] * rank)
    if group > 1 or chance.random() < 0.2:
        found["group"] = group
    added = [0] * rank
    if chance.random() < 0.4:
        # ONNX Runtime refuses output_padding of a stride and more, which the page allows below the dilation.
        found["output_padding"] = added = [chance.randrange(stride) for stride in strides]
    if chance.random() < 0.3:
        found.pop("pads", None)
        # ONNX Runtime refuses an output_shape larger than without padding.
        whole = [
            stride * (size - 1) + more + (length - 1) * step + 1
            for stride, size, more, length, step in zip(strides, spatial, added, kernel, dilations, strict=True)
        ]
        found["output_shape"] = [max(1, size - chance.randint(0, 3)) for size in whole]
    return [numbers.standard_normal(shape).astype(np.float32) for shape in shapes], found


@pytest.mark.parametrize("opset", [7, 11, 22])
def test_transposed_convolution_is_that_of_onnxruntime(opset: int) -> None:
    chance, compared = random.Random(opset), 0
    while compared < 150:
        operands, attributes = transposed_call(chance)
        try:
            found = ours(transposed_convolution, opset, operands, attributes)
        except ValueError:
            continue  # pads cut more than there is
        natural = ours(transposed_convolution, opset, operands, {**attributes, "auto_pad": "VALID"})
        same = attributes.get("auto_pad", "").startswith("SAME") and "output_shape" not in attributes
        if 0 in found[0].shape[2:]:
            continue  # ONNX Runtime refuses results without elements
        if same and any(one > other for one, other in zip(found[0].shape[2:], natural[0].shape[2:], strict=True)):
            continue  # ONNX Runtime makes less than the page's size * stride where strides are larger than the kernel
        expected = runtime("ConvTranspose", opset, operands, attributes)
        assert_same(found, expected, ([operand.shape for operand in operands], attributes))
        compared += 1


def regions_call(chance: random.Random, opset: int) -> tuple[list[Array], Attributes]:
    numbers = np.random.default_rng(chance.randrange(2**32))
    batch, count = chance.randint(1, 2), chance.randint(0, 3)
    shape = (batch, chance.randint(1, 3), chance.randint(1, 9), chance.randint(1, 9))
    begins = numbers.uniform(-3, 8, (count, 2))
    ends = begins + numbers.uniform(-1 if chance.random() < 0.2 else 0, 12, (count, 2))
    regions = np.concatenate([begins, ends], axis=1).astype(np.float32)
    found: Attributes = {"mode": chance.choice(("avg", "max"))}
    if opset >= 16 and chance.random() < 0.7:
        found["coordinate_transformation_mode"] = chance.choice(("half_pixel", "output_half_pixel"))
    if chance.random() < 0.8:
        found |= {"output_height": chance.randint(1, 4), "output_width": chance.randint(1, 4)}
    if chance.random() < 0.7:
        found |= {"sampling_ratio": chance.randint(0, 3), "spatial_scale": chance.choice((0.25, 0.5, 0.1, 2.0))}
    regions = np.round(regions) if chance.random() < 0.3 else regions
    return [numbers.standard_normal(shape).astype(np.float32), regions, numbers.integers(0, batch, count)], found


@pytest.mark.parametrize("opset", [10, 15, 16, 21, 22])
def test_regions_are_aligned_as_by_onnxruntime_and_by_the_evaluator_of_onnx(opset: int) -> None:
    chance = random.Random(opset)
    for _ in range(100):
        operands, attributes = regions_call(chance, opset)
        found = ours(roi_align, opset, operands, attributes)
        if opset < 22:  # ONNX Runtime 1.32 has no RoiAlign of opset 22
            assert_same(found, runtime("RoiAlign", opset, operands, attributes), attributes)
        if opset >= 16:  # onnx's evaluator moves the regions of older sets too
            feed = {f"x{place}": operand for place, operand in enumerate(operands)}
            expected = ReferenceEvaluator(model("RoiAlign", opset, operands, attributes, 1)).run(None, feed)
            assert_same(found, expected, attributes)


def test_the_largest_of_a_region_is_that_of_weighted_elements() -> None:
    operands = [np.array([[[[1, 2], [3, 5]]]], np.float32), np.array([[0, 0, 1, 1]], np.float32), np.array([0])]
    attributes = {"coordinate_transformation_mode": "output_half_pixel", "sampling_ratio": 1}
    assert ours(roi_align, 16, operands, {**attributes, "mode": "avg"})[0].item() == 2.75
    assert ours(roi_align, 16, operands, {**attributes, "mode": "max"})[0].item() == 5 / 4


@pytest.mark.parametrize("shape", [(2, 3, 4), (0, 3, 4), (2, 3, 4, 5), (1, 2, 2, 3, 2)])
@pytest.mark.parametrize("op", sorted(GLOBAL))
def test_global_pooling_is_that_of_onnxruntime(op: str, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    assert_same(ours(GLOBAL[op], 22, [x], {}), runtime(op, 22, [x], {}), shape)


@pytest.mark.parametrize("shape", [(2, 3, 4), (0, 3, 4), (2, 3, 4, 5)])
@pytest.mark.parametrize("p", [1, 2, 3])
def test_global_norms_are_those_of_a_window_over_all(p: int, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    expected = ours(lp_pool, 22, [x], {"p": p, "kernel_shape": shape[2:]})
    assert_same(ours(global_lp_pool, 22, [x], {"p": p}), expected, shape)
    assert_same(runtime("GlobalLpPool", 21, [x], {"p": p}), expected, shape)  # it has none of opset 22
    assert_same(ours(global_lp_pool, 1, [x], {"p": float(p)}), expected, shape)


def test_global_pooling_of_no_elements() -> None:
    assert pooled(global_max_pool, []) == [-np.inf]
    assert np.isnan(pooled(global_average_pool, []))
    assert pooled(global_lp_pool, []) == [0]


def test_windows_that_ceil_mode_adds_count_what_lies_in_the_padded_input() -> None:
    three: Attributes = {"kernel_shape": [3], "strides": [2], "ceil_mode": 1}
    assert pooled(average_pool, [1, 2, 3, 4], **three) == [2, 3.5]
    assert pooled(average_pool, [1, 2, 3, 4], **three, count_include_pad=1) == [2, 3.5]
    assert pooled(average_pool, [1, 2, 3, 4], **three, pads=[1, 1]) == [1.5, 3, 4]
    assert pooled(average_pool, [1, 2, 3, 4], **three, pads=[1, 1], count_include_pad=1) == [1, 3, 2]
    assert pooled(max_pool, [1, 2, 4, 3], **three, pads=[1, 1]) == [2, 4, 3]
    assert pooled(lp_pool, [3, 0, 4, -12], **three, p=1) == [7, 16]


@pytest.mark.parametrize("opset", [10, 22])
def test_windows_that_ceil_mode_would_start_behind_the_input_are_left_out(opset: int) -> None:
    assert pooled(max_pool, [1, 2], opset, kernel_shape=[1], strides=[2], ceil_mode=1) == [1]
    assert pooled(average_pool, [1, 2, 3], opset, kernel_shape=[2], strides=[4], pads=[1, 1], ceil_mode=1) == [1]
    # With a stride of three, the second window starts on the last element, and stays.
    assert pooled(average_pool, [1, 2, 3], opset, kernel_shape=[2], strides=[3], pads=[1, 1], ceil_mode=1) == [1, 3]


def test_automatic_padding() -> None:
    assert pooled(max_pool, [3, 1, 2], kernel_shape=[2], auto_pad="SAME_UPPER") == [3, 2, 2]
    assert pooled(max_pool, [3, 1, 2], kernel_shape=[2], auto_pad="SAME_LOWER") == [3, 3, 2]
    # The padding of SAME is that of the dilated window; ONNX Runtime pads for a window of two elements.
    same: Attributes = {"kernel_shape": [2], "dilations": [2], "auto_pad": "SAME_UPPER"}
    assert pooled(max_pool, [1, 2, 3, 4, 5], **same) == [2, 3, 4, 5, 4]
    # SAME never cuts off elements; ONNX Runtime takes the second one, or refuses the call.
    assert pooled(max_pool, [1, 2, 3], kernel_shape=[1], strides=[3], auto_pad="SAME_UPPER") == [1]
    # VALID has no window beyond the input; ONNX Runtime adds one for ceil_mode.
    assert pooled(max_pool, [1, 2, 3, 4, 5], kernel_shape=[2], strides=[2], auto_pad="VALID", ceil_mode=1) == [2, 4]


def test_a_window_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="no window fits"):
        pooled(max_pool, [1, 2], kernel_shape=[3], strides=[2])  # ONNX Runtime makes one
    assert pooled(average_pool, [], kernel_shape=[1]) == []
    assert pooled(lp_pool, [[], []], kernel_shape=[1, 1]) == [[], []]


def test_indices_count_the_whole_tensor() -> None:
    x = np.array([[[[1, 5, 5], [5, 0, 2]]]] * 2, np.float32)
    square = {"kernel_shape": [2, 2]}
    assert ours(max_pool, 22, [x], square)[1].ravel().tolist() == [1, 1, 7, 7]
    by_columns = ours(max_pool, 22, [x], {**square, "storage_order": 1})[1]
    assert by_columns.ravel().tolist() == [2, 2, 8, 8]


def test_the_largest_element_may_be_infinite_or_nan() -> None:
    # Without Indices, ONNX Runtime gives the lowest finite number for the first, and mostly leaves out NaN.
    for elements, largest, place in (([-np.inf, -np.inf], -np.inf, 0), ([1, np.nan], np.nan, 1), ([-1, -1], -1, 0)):
        values, places = ours(max_pool, 22, [np.array([[elements]], np.float32)], {"kernel_shape": [2]})
        np.testing.assert_equal(values.item(), largest)
        assert places.item() == place


def test_windows_of_padding_only() -> None:
    around: Attributes = {"kernel_shape": [2], "dilations": [2], "pads": [1, 1]}
    for dtype, lowest in ((np.float32, -np.inf), (np.int8, -128), (np.uint8, 0)):
        for order in (0, 1):
            values, places = ours(max_pool, 22, [np.array([[[7]]], dtype)], {**around, "storage_order": order})
            assert (values.item(), places.item()) == (lowest, -1)
    assert np.isnan(pooled(average_pool, [7], **around))
    assert pooled(average_pool, [7], **around, count_include_pad=1) == [0]
    assert pooled(lp_pool, [7], **around) == [0]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_results_have_the_type_of_the_operand_and_are_rounded_once(dtype: Any) -> None:
    x = np.full((1, 1, 600), 100).astype(dtype)
    for definition in (average_pool, max_pool, lp_pool, global_average_pool, global_max_pool, global_lp_pool):
        (found, *_) = ours(definition, 22, [x], {"kernel_shape": [600]})
        exact = 100 * np.sqrt(600) if "lp" in definition.__name__ else 100
        assert found.dtype == x.dtype
        assert found.item() == np.array(exact).astype(dtype).item()
    (found,) = ours(transposed_convolution, 22, [x, np.ones((1, 1, 600)).astype(dtype)], {"pads": [599, 599]})
    assert (found.dtype, found.item()) == (x.dtype, np.array(60000.0).astype(dtype).item())


def test_overflow_gives_infinity_without_a_warning() -> None:
    x = np.full((1, 1, 2), 60000, np.float16)
    assert ours(lp_pool, 22, [x], {"p": 1, "kernel_shape": [2]})[0].item() == np.inf
    assert ours(global_lp_pool, 22, [x], {"p": 1})[0].item() == np.inf
    assert ours(transposed_convolution, 22, [x, x], {"pads": [1, 1]})[0].item() == np.inf


def test_the_first_norms_are_left_to_onnx() -> None:
    x = np.ones((1, 1, 2), np.float32)
    assert lp_pool(EvaluatedCall((x,), {"kernel_shape": [2], "p": 2.0}, 1, (True,))) is None
    assert lp_pool(EvaluatedCall((x,), {"kernel_shape": [2], "p": 0}, 22, (True,))) is None
    assert global_lp_pool(EvaluatedCall((x,), {"p": 0}, 22, (True,))) is None


def transposed(weights: Sequence[float], x: Sequence[float], **attributes: Any) -> Any:
    operands = [np.asarray(operand, np.float32)[None, None] for operand in (x, weights)]
    return ours(transposed_convolution, 22, operands, attributes)[0][0, 0].tolist()


def test_the_size_of_a_transposed_convolution() -> None:
    weights, x = [1, 10, 100], [1, 2]
    assert transposed(weights, x) == [1, 12, 120, 200]
    assert transposed(weights, x, output_shape=[3]) == [12, 120, 200]
    assert transposed(weights, x, output_shape=[3], auto_pad="SAME_LOWER") == [12, 120, 200]
    assert transposed(weights, x, output_shape=[3], auto_pad="SAME_UPPER") == [1, 12, 120]
    # More than the whole sum: zeros at the end, as output_padding adds. ONNX Runtime refuses both.
    assert transposed(weights, x, output_shape=[6]) == [1, 12, 120, 200, 0, 0]
    assert transposed(weights, x, output_padding=[1], dilations=[2]) == [1, 2, 10, 20, 100, 200, 0]
    assert transposed(weights, x, pads=[2, 2]) == []
    # SAME makes size * stride elements; ONNX Runtime makes four.
    assert transposed([1], x, strides=[3], auto_pad="SAME_UPPER") == [1, 0, 0, 2, 0, 0]


def test_no_elements_leave_the_bias() -> None:
    operands = [np.ones(shape, np.float32) for shape in ((1, 2, 0), (2, 1, 3), (1,))]
    assert ours(transposed_convolution, 22, operands, {})[0].tolist() == [[[1, 1]]]
