"""The conditions of each operator's page, in words of the page; operands are counted from 0.

A node that breaks one is no test: a compiler may refuse it, or return anything. onnx's checker and its evaluator do not
look at these.
"""

import math

from miscompile.base.dtypes import DTYPES
from miscompile.oracles.unspecified.pages.axes import axes_are_counted_from_the_front
from miscompile.oracles.unspecified.pages.indices import (
    batches,
    grams,
    indices,
    inside,
    labels,
    positions,
    reversed_,
    rotated,
    same_rank,
    split,
    tuples,
    unpooled,
    updates,
)
from miscompile.oracles.unspecified.pages.node import NodeView, PageCondition
from miscompile.oracles.unspecified.pages.operands import (
    alike,
    along,
    are_finite,
    at_least,
    axis_within,
    channels,
    finite_attribute,
    for_matrices,
    has_axes,
    length_of_rank,
    lists_of_one_length,
    low,
    one_way,
    outputs,
    plain_for_vectors,
    positive,
    ranks,
    same_lengths,
    same_shape,
    scalars,
)
from miscompile.oracles.unspecified.pages.quantised import granular, has_no_zero_point, is_a_precision, like_scale
from miscompile.oracles.unspecified.pages.recurrent import recurrent
from miscompile.oracles.unspecified.pages.windows import (
    deformed,
    pads_are_free,
    pads_are_small,
    scaled,
    small_output_padding,
    spatial,
    steps_are_positive,
    window_fits,
)


def _normalised(node: NodeView) -> bool:
    shape, axis = node.shape(0) or (), node.whole("axis", -1)
    return -len(shape) <= axis < len(shape) and 0 not in shape[axis:]


def _boxes(node: NodeView) -> bool:
    boxes, scores = node.shape(0) or (), node.shape(1) or ()
    return len(boxes) == 3 and len(scores) == 3 and boxes[2] == 4 and (boxes[0], boxes[1]) == (scores[0], scores[2])


def _bands(node: NodeView) -> bool:
    names = [node.numbers(place) for place in range(5)]
    if any(len(numbers) != 1 for numbers in names):
        return False
    bins, length, rate, low, high = (numbers[0] for numbers in names)
    return bins > 0 and length > 0 and rate > 0 and 0 <= low < high <= rate / 2


def _within_keys(node: NodeView) -> bool:
    keys = node.shape(1) or ()
    return len(keys) < 3 or all(0 <= item <= keys[-2] for item in node.numbers(6))


def _is_mask(node: NodeView) -> bool:
    queries, mask = node.tensor(0), node.tensor(3)
    return mask is None or queries is None or mask.dtype in ("bool", queries.dtype)


def _batch_of_grid(node: NodeView) -> bool:
    theta, size = node.shape(0) or (0,), node.numbers(1)
    fits = theta[1:] == {4: (2, 3), 5: (3, 4)}.get(len(size))
    return fits and size[0] == theta[0] and min(size) > 0


def _has_channels(node: NodeView) -> bool:
    x, weights = node.shape(0) or (), node.shape(3) or ()
    return len(x) == len(weights) > 1 and x[1] == weights[1] * node.whole("group", 1)


def _truncates_floats(node: NodeView) -> bool:
    first = node.tensor(0)
    plain = node.instance.version >= 28 or first is None or DTYPES[first.dtype].kind != "float"
    return plain or node.whole("fmod", 0) == 1


def _grams_have_length(node: NodeView) -> bool:
    least, most = node.whole("min_gram_length", 1), node.whole("max_gram_length", 1)
    return 1 <= least <= most <= len(node.whole_list("ngram_counts"))


def _one_batch(node: NodeView) -> bool:
    shapes = [node.shape(place) for place in range(3)]
    return len({shape[:1] for shape in shapes if shape is not None}) == 1


def _low_is_below_high(node: NodeView) -> bool:
    """Tell whether the limits are in order, which only the pages from operator set 11 on do not ask for."""
    least, most = node.instance.kwargs.get("min"), node.instance.kwargs.get("max")
    return not isinstance(least, int | float) or not isinstance(most, int | float) or least <= most


def _slopes(node: NodeView) -> bool:
    shape, slope = node.shape(0), node.shape(1)
    if shape is None or slope is None:
        return True
    if node.instance.version < 7:
        return slope == (1,) or (len(shape) > 1 and slope == (shape[1],))
    return one_way(1)[1](node)


def _is_depth(node: NodeView) -> bool:
    return all(math.isfinite(item) and item > 0 and item == int(item) for item in node.numbers(1))


def _axis_of_transform(node: NodeView) -> bool:
    rank = len(node.shape(0) or ())
    return all(-rank <= item < rank - 1 and item != -1 for item in node.numbers(2))


def _axes(node: NodeView) -> bool:
    # onnx's own tests have negative axes of Split, Softmax and its kin, where the pages do not speak of any.
    lenient = node.instance.api == "Split" or node.instance.api.endswith("max")
    return lenient or axes_are_counted_from_the_front(node)


OF_ALL: tuple[tuple[str, PageCondition], ...] = (
    ("strides and dilations are positive", steps_are_positive),
    ("pads and auto_pad are not used together", pads_are_free),
    ("negative axes are only used where the page of the version allows them", _axes),
)
"""Conditions of every operator."""

_VARIADIC = (("operands have one shape, before operator set 8", alike),)

_POOL = (("there are spatial dimensions, none of them empty", spatial),)

_WINDOW = (*_POOL, window_fits(0), ("no window lies in the padding alone", pads_are_small))

_LOSS = (
    *ranks(p2=1),
    channels(2),
    ("labels are classes, or ignored", labels),
    (
        "labels have one dimension less",
        lambda node: len(node.shape(1) or ()) == len(node.shape(0) or ()) - 1,
    ),
)

_QUANTISED = (
    *positive(1),
    like_scale(1, 2),
    ("the scale is that of a tensor, of an axis or of blocks", granular),
    has_no_zero_point(2, 1),
    ("precision is a type that scales have", is_a_precision),
)

CONDITIONS: dict[str, tuple[tuple[str, PageCondition], ...]] = {
    "AffineGrid": (("theta is [N, 2, 3] or [N, 3, 4], size has N and positive sizes", _batch_of_grid),),
    "ArgMax": (axis_within(0),),
    "ArgMin": (axis_within(0),),
    "Attention": (
        *ranks(p6=1),
        ("queries, keys and values have one batch", _one_batch),
        ("valid lengths are within the keys", _within_keys),
        ("the mask is of truth values, or of the type of the queries", _is_mask),
    ),
    "AveragePool": _WINDOW,
    "BatchNormalization": tuple(channels(place) for place in range(1, 5)),
    "Clip": (*ranks(p1=0, p2=0), ("min is not above max", _low_is_below_high)),
    "Conv": (*_POOL, window_fits(1), outputs(1, 2)),
    "ConvInteger": (*_POOL, window_fits(1), *scalars(2), along(3, 1, 0)),
    "ConvTranspose": (
        *_POOL,
        outputs(1, 2, transposed=True),
        ("output_padding is less than stride or dilation", small_output_padding),
    ),
    "DFT": (("axis is not the last, and within the rank", _axis_of_transform),),
    "DeformConv": (
        *_POOL,
        ("there are channels", lambda node: 0 not in (node.shape(0) or ())[1:]),
        window_fits(1),
        outputs(1, 3),
        ("offset and mask have a number for each place of the window", deformed),
    ),
    "DequantizeLinear": _QUANTISED,
    "Dropout": (("the ratio is in [0, 1)", lambda node: all(0 <= item < 1 for item in node.numbers(1))),),
    "GRU": recurrent(3),
    "Gather": (indices(0),),
    "GatherElements": (indices(0), ("indices are within the other sizes", inside)),
    "GatherND": (("indices are within the operand", tuples),),
    "GlobalAveragePool": _POOL,
    "GlobalLpPool": (*_POOL, low("p", 1)),
    "GlobalMaxPool": _POOL,
    "GroupNormalization": (channels(1), channels(2)),
    "Hardmax": (axis_within(-1),),
    "InstanceNormalization": (*_POOL, channels(1), channels(2)),
    "LRN": (low("size", 1),),
    "LSTM": recurrent(4),
    "LayerNormalization": (
        ("axis is within the rank, and something is normalised", _normalised),
        one_way(1),
        one_way(2),
    ),
    "LogSoftmax": (axis_within(-1),),
    "LpNormalization": (axis_within(-1),),
    "LpPool": (*_WINDOW, low("p", 1)),
    "MatMulInteger": (for_matrices(2, 0, -2), for_matrices(3, 1, -1), *plain_for_vectors((2, 0), (3, 1))),
    "Max": _VARIADIC,
    "MaxPool": _WINDOW,
    "MaxUnpool": (*_POOL, same_shape(0, 1), ("indices are distinct and within the result", unpooled)),
    "Mean": _VARIADIC,
    "Mod": (("fmod is 1 for floats, before operator set 28", _truncates_floats),),
    "MeanVarianceNormalization": (("axes are not empty", has_axes),),
    "MelWeightMatrix": (("bands lie between 0 and half the rate", _bands),),
    "Min": _VARIADIC,
    "NegativeLogLikelihoodLoss": _LOSS,
    "NonMaxSuppression": (
        ("boxes are [batch, boxes, 4], scores [batch, classes, boxes]", _boxes),
        *scalars(2, 3, 4),
        at_least(3, 0.0, 1.0),
    ),
    "NonZero": (("the operand is no scalar", lambda node: node.shape(0) != ()),),
    "OneHot": (("depth is a positive whole number", _is_depth),),
    "PRelu": (("the slope has one element, one for each channel, or broadcasts to the operand", _slopes),),
    "Pad": tuple(scalars(2)),
    "QLinearConv": (
        *_POOL,
        window_fits(3),
        ("the channels are those of the weights", _has_channels),
        *scalars(1, 2, 6, 7),
        *positive(1, 4, 6),
        along(4, 3, 0),
        along(5, 3, 0),
        outputs(3, 8),
    ),
    "QLinearMatMul": (
        *scalars(6, 7),
        *positive(1, 4, 6),
        like_scale(1, 2),
        like_scale(4, 5),
        for_matrices(2, 0, -2),
        for_matrices(5, 3, -1),
        has_no_zero_point(2, 0),
        has_no_zero_point(5, 3),
        has_no_zero_point(7, 6),
    ),
    "QuantizeLinear": _QUANTISED,
    "RMSNormalization": (("axis is within the rank, and something is normalised", _normalised), one_way(1)),
    "RNN": recurrent(1),
    "Range": (("the operands are finite", are_finite(0, 1, 2)),),
    "Reshape": (at_least(1, -1.0),),
    "Resize": (*positive(2, 3), ("scales are as many as axes", scaled(2)), ("sizes are as many as axes", scaled(3))),
    "ReverseSequence": (("the axes are 0 and 1, sequence_lens are [batch] and within the axis", reversed_),),
    "RotaryEmbedding": (
        same_shape(1, 2),
        ("positions are within the caches", rotated),
        ("positions are [batch, sequence]", positions),
        low("num_heads", 0),
    ),
    "RoiAlign": (
        ("batch_indices are numbers of images", batches),
        low("output_height", 1),
        low("output_width", 1),
        low("sampling_ratio", 0),
        finite_attribute("spatial_scale"),
    ),
    "STFT": tuple(ranks(p0=3)),
    "ScatterElements": (("operands have the same rank", same_rank), same_shape(1, 2), indices(0)),
    "ScatterND": (("indices are within the operand", tuples), ("updates have the shape of slices", updates)),
    "Slice": (same_lengths(1, 2, 3, 4),),
    "Softmax": (axis_within(-1),),
    "Split": (low("num_outputs", 1),),
    "SplitToSequence": (("split is positive, or adds up to the size of the axis", split),),
    "SoftmaxCrossEntropyLoss": _LOSS,
    "Sum": _VARIADIC,
    "TfIdfVectorizer": (
        lists_of_one_length("weights", "ngram_indexes"),
        ("the pool holds distinct n-grams of each length, one for each index", grams),
        ("lengths of n-grams are in order, and those of the pool", _grams_have_length),
        low("max_skip_count", 0),
    ),
    "Tile": (length_of_rank(1),),
    "TopK": (at_least(1, 1.0),),
    "Upsample": (
        *positive(1),
        ("scales are as many as axes", lambda node: len(node.numbers(1)) == len(node.shape(0) or ())),
    ),
}
"""Conditions by operator of the default domain, in words of its page; operands are counted from 0."""
