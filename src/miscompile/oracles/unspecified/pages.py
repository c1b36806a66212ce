"""Conditions that the pages of ONNX's operators state, and that neither onnx's checker nor its evaluator checks.

A node that breaks one is no test: a compiler may refuse it, or return anything.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from miscompile.core.tensor import Tensor
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn, Held, tensor_of


@dataclass(frozen=True, slots=True)
class NodeView:
    """The operands and attributes of an instance, as conditions look at them."""

    instance: Instance

    def tensor(self, place: int) -> Tensor | None:
        """Return an operand, None if it is absent or no tensor."""
        given = self.instance.inputs
        value = given[place] if place < len(given) else None
        return tensor_of(value) if isinstance(value, Held | Drawn) else None

    def shape(self, place: int) -> tuple[int, ...] | None:
        """Return the shape of an operand, None if it is absent."""
        found = self.tensor(place)
        return None if found is None else found.shape

    def numbers(self, place: int) -> list[float]:
        """Return the elements of an operand, none if it is absent."""
        found = self.tensor(place)
        return [] if found is None else [float(item) for item in found.numbers().ravel().tolist()]

    def whole(self, name: str, default: int) -> int:
        """Return an integer attribute."""
        value = self.instance.kwargs.get(name, default)
        return value if isinstance(value, int) else default

    def text(self, name: str, default: str) -> str:
        """Return a text attribute."""
        value = self.instance.kwargs.get(name, default)
        return value if isinstance(value, str) else default

    def whole_list(self, name: str) -> list[int]:
        """Return a list of integers, empty if it is left out."""
        value = self.instance.kwargs.get(name, ())
        return [item for item in value if isinstance(item, int)] if isinstance(value, tuple | list) else []


PageCondition = Callable[[NodeView], bool]
"""Tells whether a node fulfils a condition."""


def broken(instance: Instance) -> str:
    """Return the first condition of its operator's page that a node breaks, empty if it fulfils all."""
    if instance.library != "onnx":
        return ""
    node = NodeView(instance)
    for words, holds in (*_ALL, *CONDITIONS.get(instance.api, ())):
        if not holds(node):
            return f"the operator's page: {words}"
    return ""


def _ranks(**ranks: int) -> Iterator[tuple[str, PageCondition]]:
    """Yield a condition for each operand, given as `p2=1` for rank 1 of the operand at place 2."""
    for word, rank in ranks.items():
        place = int(word[1:])

        def holds(node: NodeView, place: int = place, rank: int = rank) -> bool:
            shape = node.shape(place)
            return shape is None or len(shape) == rank

        yield f"operand {place} has rank {rank}", holds


def _channels(place: int) -> tuple[str, PageCondition]:
    def holds(node: NodeView) -> bool:
        shape, of = node.shape(place), node.shape(0)
        return shape is None or (of is not None and len(of) > 1 and shape == (of[1],))

    return f"operand {place} has one element for each channel", holds


def _outputs(weights: int, place: int, *, transposed: bool = False) -> tuple[str, PageCondition]:
    """Return the condition that a bias has one element for each channel of the result."""

    def holds(node: NodeView) -> bool:
        shape, of = node.shape(place), node.shape(weights)
        if shape is None or of is None:
            return True
        count = of[1] * node.whole("group", 1) if transposed and len(of) > 1 else of[0]
        return shape == (count,)

    return f"operand {place} has one element for each channel of the result", holds


def _at_least(place: int, least: float, most: float = math.inf) -> tuple[str, PageCondition]:
    said = f"at least {least:g}" if most == math.inf else f"between {least:g} and {most:g}"
    return (
        f"the elements of operand {place} are {said}",
        lambda node: all(least <= item <= most for item in node.numbers(place)),
    )


def _positive(*places: int) -> Iterator[tuple[str, PageCondition]]:
    for place in places:

        def holds(node: NodeView, place: int = place) -> bool:
            return all(item > 0 for item in node.numbers(place))

        yield f"the elements of operand {place} are positive", holds


def _same_shape(one: int, other: int) -> tuple[str, PageCondition]:
    def holds(node: NodeView) -> bool:
        first, second = node.shape(one), node.shape(other)
        return first is None or second is None or first == second

    return f"operands {one} and {other} have the same shape", holds


def _indices(default: int | None) -> tuple[str, PageCondition]:
    """Return the condition that indices along an axis are within the first operand; `default` is that of the axis."""

    def holds(node: NodeView) -> bool:
        shape = node.shape(0) or ()
        axis = node.whole("axis", 0 if default is None else default)
        if not -len(shape) <= axis < len(shape):
            return False
        return all(-shape[axis] <= item < shape[axis] for item in node.numbers(1))

    return "indices are within the size of the axis", holds


def _tuples(node: NodeView) -> bool:
    """Tell whether each tuple of indices is within the first operand."""
    indices, shape = node.tensor(1), node.shape(0) or ()
    if indices is None or not indices.shape:
        return False
    batch, width = node.whole("batch_dims", 0), indices.shape[-1]
    sizes = np.array(shape[batch : batch + width])
    found = indices.numbers().reshape(-1, width) if width else indices.numbers().reshape(0, 0)
    return len(sizes) == width and bool(((found >= -sizes) & (found < sizes)).all())


def _updates(node: NodeView) -> bool:
    shape, indices, updates = node.shape(0), node.shape(1), node.shape(2)
    return shape is None or not indices or updates == (*indices[:-1], *shape[indices[-1] :])


def _same_rank(node: NodeView) -> bool:
    shapes = [node.shape(place) for place in range(3)]
    return len({len(shape) for shape in shapes if shape is not None}) == 1


def _inside(node: NodeView) -> bool:
    """Tell whether the sizes of indices are within those of the first operand, apart from the axis."""
    shape, indices = node.shape(0) or (), node.shape(1) or ()
    axis = node.whole("axis", 0) % max(len(shape), 1)
    return len(shape) == len(indices) and all(
        one <= other for place, (one, other) in enumerate(zip(indices, shape, strict=True)) if place != axis
    )


def _spatial(node: NodeView) -> bool:
    shape = node.shape(0) or ()
    return len(shape) >= 3 and 0 not in shape[2:]


def _window_fits(place: int) -> tuple[str, PageCondition]:
    """Return the condition that the window of weights at `place`, or of the attribute, fits into the padded operand."""

    def holds(node: NodeView) -> bool:
        shape, weights = node.shape(0) or (), node.shape(place) if place else None
        kernel = list(weights[2:]) if weights else node.whole_list("kernel_shape")
        spatial = shape[2:]
        if node.text("auto_pad", "NOTSET") not in ("NOTSET", "VALID") or len(kernel) != len(spatial):
            return len(kernel) == len(spatial)
        pads = node.whole_list("pads") or [0] * (2 * len(spatial))
        steps = node.whole_list("dilations") or [1] * len(spatial)
        if len(pads) != 2 * len(spatial) or len(steps) != len(spatial):
            return False
        whole = [size + pads[axis] + pads[axis + len(spatial)] for axis, size in enumerate(spatial)]
        return all(
            step * (size - 1) + 1 <= room for size, step, room in zip(kernel, steps, whole, strict=True)
        ) and all(pad >= 0 for pad in pads)

    return "the window fits into the padded operand", holds


def _pads_are_small(node: NodeView) -> bool:
    """Tell whether no window lies in the padding alone."""
    kernel, pads = node.whole_list("kernel_shape"), node.whole_list("pads")
    steps = node.whole_list("dilations") or [1] * len(kernel)
    if not pads or len(pads) != 2 * len(kernel) or len(steps) != len(kernel):
        return not pads
    extents = [step * (size - 1) + 1 for size, step in zip(kernel, steps, strict=True)]
    return all(pad < extent for pad, extent in zip(pads, extents * 2, strict=True))


def _recurrent(gates: int) -> tuple[tuple[str, PageCondition], ...]:
    """Return the conditions of a recurrent layer with so many gates."""

    def state(place: int) -> PageCondition:
        def holds(node: NodeView) -> bool:
            shape, x, r = node.shape(place), node.shape(0), node.shape(2)
            if shape is None or x is None or r is None or len(x) != 3 or len(r) != 3:
                return shape is None
            batch = x[0] if node.whole("layout", 0) else x[1]
            directions = (batch, r[0]) if node.whole("layout", 0) else (r[0], batch)
            return shape == (*directions, r[2])

        return holds

    def lengths(node: NodeView) -> bool:
        shape, x = node.shape(4), node.shape(0)
        if shape is None or x is None or len(x) != 3:
            return shape is None
        steps, batch = (x[1], x[0]) if node.whole("layout", 0) else (x[0], x[1])
        return shape == (batch,) and all(1 <= item <= steps for item in node.numbers(4))

    def width(place: int, count: int) -> PageCondition:
        def holds(node: NodeView) -> bool:
            shape, r = node.shape(place), node.shape(2)
            return shape is None or (r is not None and len(r) == 3 and shape == (r[0], count * r[2]))

        return holds

    def clip(node: NodeView) -> bool:
        value = node.instance.kwargs.get("clip")
        return not isinstance(value, int | float) or 0 < value < math.inf

    def hidden(node: NodeView) -> bool:
        r, size = node.shape(2), node.instance.kwargs.get("hidden_size")
        return size is None or (r is not None and len(r) == 3 and r[2] == size and r[2] > 0)

    return (
        ("hidden_size is that of R", hidden),
        ("B is [directions, 2 * gates * hidden_size]", width(3, 2 * gates)),
        ("sequence_lens are [batch], within the sequence", lengths),
        ("initial_h is [directions, batch, hidden_size]", state(5)),
        ("initial_c is [directions, batch, hidden_size]", state(6)),
        ("P is [directions, 3 * hidden_size]", width(7, 3)),
        ("clip is a positive threshold", clip),
    )


def _normalised(node: NodeView) -> bool:
    shape, axis = node.shape(0) or (), node.whole("axis", -1)
    return -len(shape) <= axis < len(shape) and 0 not in shape[axis:]


def _labels(node: NodeView) -> bool:
    shape = node.shape(0) or (0, 0)
    ignored = node.instance.kwargs.get("ignore_index")
    return len(shape) > 1 and all(0 <= item < shape[1] or item == ignored for item in node.numbers(1))


def _reversed(node: NodeView) -> bool:
    shape, batch, time = node.shape(0) or (), node.whole("batch_axis", 1), node.whole("time_axis", 0)
    if {batch, time} != {0, 1} or len(shape) < 2 or node.shape(1) != (shape[batch],):
        return False
    return all(0 <= item <= shape[time] for item in node.numbers(1))


def _boxes(node: NodeView) -> bool:
    boxes, scores = node.shape(0) or (), node.shape(1) or ()
    return len(boxes) == 3 and len(scores) == 3 and boxes[2] == 4 and (boxes[0], boxes[1]) == (scores[0], scores[2])


def _bands(node: NodeView) -> bool:
    names = [node.numbers(place) for place in range(5)]
    if any(len(numbers) != 1 for numbers in names):
        return False
    bins, length, rate, low, high = (numbers[0] for numbers in names)
    return bins > 0 and length > 0 and rate > 0 and 0 <= low < high <= rate / 2


def _unpooled(node: NodeView) -> bool:
    size = math.prod(int(item) for item in node.numbers(2)) if node.tensor(2) is not None else math.inf
    found = node.numbers(1)
    return all(0 <= item < size for item in found) and len(set(found)) == len(found)


def _scalars(*places: int) -> Iterator[tuple[str, PageCondition]]:
    for place in places:

        def holds(node: NodeView, place: int = place) -> bool:
            return node.shape(place) in (None, (), (1,))

        yield f"operand {place} is a scalar or has one element", holds


def _along(place: int, of: int, axis: int) -> tuple[str, PageCondition]:
    """Return the condition that an operand is a scalar, or has the size of the operand `of` along `axis`."""

    def holds(node: NodeView) -> bool:
        shape, other = node.shape(place), node.shape(of)
        if shape is None or other is None:
            return True
        return shape in ((), (1,)) or (-len(other) <= axis < len(other) and shape == (other[axis],))

    return f"operand {place} is a scalar, or one element for each along axis {axis} of operand {of}", holds


def _lists_of_one_length(one: str, other: str) -> tuple[str, PageCondition]:
    def holds(node: NodeView) -> bool:
        first, second = node.instance.kwargs.get(one), node.instance.kwargs.get(other)
        return not isinstance(first, tuple | list) or not isinstance(second, tuple | list) or len(first) == len(second)

    return f"{one} and {other} have the same length", holds


def _scaled(place: int) -> PageCondition:
    def holds(node: NodeView) -> bool:
        given, axes = node.tensor(place), node.instance.kwargs.get("axes")
        count = len(axes) if isinstance(axes, tuple | list) else len(node.shape(0) or ())
        return given is None or not given.array.size or given.shape == (count,)

    return holds


def _alike(node: NodeView) -> bool:
    """Tell whether the operands have one shape, where the version of a variadic operator does not broadcast."""
    shapes = {node.shape(place) for place in range(len(node.instance.inputs))}
    return node.instance.version >= 8 or len(shapes) == 1


def _plain_for_vectors(*pairs: tuple[int, int]) -> Iterator[tuple[str, PageCondition]]:
    """Yield for each pair the condition that an operand is a scalar if the other one is a vector."""
    for place, of in pairs:

        def holds(node: NodeView, place: int = place, of: int = of) -> bool:
            return len(node.shape(of) or ()) != 1 or not node.shape(place)

        yield f"operand {place} is a scalar, because operand {of} is a vector", holds


def _low(name: str, least: int) -> tuple[str, PageCondition]:
    return f"{name} is at least {least}", lambda node: node.whole(name, least) >= least


def _rotated(node: NodeView) -> bool:
    cache = node.shape(1) or (0,)
    return all(0 <= item < cache[0] for item in node.numbers(3))


def _within_keys(node: NodeView) -> bool:
    keys = node.shape(1) or ()
    return len(keys) < 3 or all(0 <= item <= keys[-2] for item in node.numbers(6))


def _batch_of_grid(node: NodeView) -> bool:
    theta, size = node.shape(0) or (0,), node.numbers(1)
    return bool(size) and size[0] == theta[0] and min(size) > 0


def _steps_are_positive(node: NodeView) -> bool:
    return all(step >= 1 for name in ("strides", "dilations") for step in node.whole_list(name))


_ALL: tuple[tuple[str, PageCondition], ...] = (("strides and dilations are positive", _steps_are_positive),)
"""Conditions of every operator."""


def _small_output_padding(node: NodeView) -> bool:
    paddings = node.whole_list("output_padding")
    strides = node.whole_list("strides") or [1] * len(paddings)
    dilations = node.whole_list("dilations") or [1] * len(paddings)
    if not paddings:
        return True
    if not len(paddings) == len(strides) == len(dilations):
        return False
    rows = zip(paddings, strides, dilations, strict=True)
    return all(0 <= padding < max(stride, dilation) for padding, stride, dilation in rows)


def _same_lengths(*places: int) -> tuple[str, PageCondition]:
    def holds(node: NodeView) -> bool:
        return len({shape for shape in map(node.shape, places) if shape is not None}) <= 1

    return f"operands {', '.join(map(str, places))} have the same length", holds


def _split(node: NodeView) -> bool:
    given, shape, axis = node.tensor(1), node.shape(0) or (), node.whole("axis", 0)
    if given is None or not -len(shape) <= axis < len(shape):
        return given is None
    numbers = node.numbers(1)
    if not given.shape:
        return numbers[0] > 0
    return all(item >= 0 for item in numbers) and sum(numbers) == shape[axis]


def _is_depth(node: NodeView) -> bool:
    return all(math.isfinite(item) and item > 0 and item == int(item) for item in node.numbers(1))


def _batches(node: NodeView) -> bool:
    """Tell whether the third operand, where it is read, holds numbers of rows of the first one."""
    size = (node.shape(0) or (0,))[0]
    return all(0 <= item < size for item in node.numbers(2))


def _are_finite(*places: int) -> PageCondition:
    return lambda node: all(math.isfinite(item) for place in places for item in node.numbers(place))


def _axis_of_transform(node: NodeView) -> bool:
    rank = len(node.shape(0) or ())
    return all(-rank <= item < rank - 1 and item != -1 for item in node.numbers(2))


def _grams(node: NodeView) -> bool:
    """Tell whether the pool holds whole n-grams of each length, as many as there are indices."""
    counts = node.whole_list("ngram_counts")
    pool = node.instance.kwargs.get("pool_int64s") or node.instance.kwargs.get("pool_strings") or ()
    if not isinstance(pool, tuple | list) or not counts or counts[0] != 0:
        return False
    ends = [*counts[1:], len(pool)]
    sizes = [end - begin for begin, end in zip(counts, ends, strict=True)]
    if any(size < 0 or size % (place + 1) for place, size in enumerate(sizes)):
        return False
    grams = [
        tuple(pool[begin + at : begin + at + place + 1])
        for place, (begin, size) in enumerate(zip(counts, sizes, strict=True))
        for at in range(0, size, place + 1)
    ]
    return len(set(grams)) == len(grams) == len(node.whole_list("ngram_indexes"))


def _has_axes(node: NodeView) -> bool:
    return node.instance.kwargs.get("axes") not in ((), [])


_VARIADIC = (("operands have one shape, before operator set 8", _alike),)
_POOL = (("there are spatial dimensions, none of them empty", _spatial),)
_WINDOW = (*_POOL, _window_fits(0), ("no window lies in the padding alone", _pads_are_small))
_LOSS = (
    *_ranks(p2=1),
    _channels(2),
    ("labels are classes, or ignored", _labels),
    (
        "labels have one dimension less",
        lambda node: len(node.shape(1) or ()) == len(node.shape(0) or ()) - 1,
    ),
)
_QUANTISED = tuple(_positive(1))

CONDITIONS: dict[str, tuple[tuple[str, PageCondition], ...]] = {
    "AffineGrid": (("size has the batch of theta, and positive sizes", _batch_of_grid),),
    "Attention": (("valid lengths are within the keys", _within_keys),),
    "AveragePool": _WINDOW,
    "BatchNormalization": tuple(_channels(place) for place in range(1, 5)),
    "Clip": tuple(_ranks(p1=0, p2=0)),
    "Conv": (*_POOL, _window_fits(1), _outputs(1, 2)),
    "ConvInteger": (*_POOL, _window_fits(1), *_scalars(2), _along(3, 1, 0)),
    "ConvTranspose": (
        *_POOL,
        _outputs(1, 2, transposed=True),
        ("output_padding is less than stride or dilation", _small_output_padding),
    ),
    "DFT": (("axis is not the last, and within the rank", _axis_of_transform),),
    "DeformConv": (
        *_POOL,
        ("there are channels", lambda node: 0 not in (node.shape(0) or ())[1:]),
        _window_fits(1),
        _outputs(1, 3),
    ),
    "DequantizeLinear": _QUANTISED,
    "Dropout": (("the ratio is in [0, 1)", lambda node: all(0 <= item < 1 for item in node.numbers(1))),),
    "GRU": _recurrent(3),
    "Gather": (_indices(0),),
    "GatherElements": (_indices(0), ("indices are within the other sizes", _inside)),
    "GatherND": (("indices are within the operand", _tuples),),
    "GlobalAveragePool": _POOL,
    "GlobalLpPool": (*_POOL, _low("p", 1)),
    "GlobalMaxPool": _POOL,
    "GroupNormalization": (_channels(1), _channels(2)),
    "InstanceNormalization": (*_POOL, _channels(1), _channels(2)),
    "LRN": (_low("size", 1),),
    "LSTM": _recurrent(4),
    "LayerNormalization": (("axis is within the rank, and something is normalised", _normalised),),
    "LpPool": (*_WINDOW, _low("p", 1)),
    "MatMulInteger": (_along(2, 0, -2), _along(3, 1, -1), *_plain_for_vectors((2, 0), (3, 1))),
    "Max": _VARIADIC,
    "MaxPool": _WINDOW,
    "MaxUnpool": (*_POOL, _same_shape(0, 1), ("indices are distinct and within the result", _unpooled)),
    "Mean": _VARIADIC,
    "MeanVarianceNormalization": (("axes are not empty", _has_axes),),
    "MelWeightMatrix": (("bands lie between 0 and half the rate", _bands),),
    "Min": _VARIADIC,
    "NegativeLogLikelihoodLoss": _LOSS,
    "NonMaxSuppression": (
        ("boxes are [batch, boxes, 4], scores [batch, classes, boxes]", _boxes),
        *_scalars(2, 3, 4),
        _at_least(3, 0.0, 1.0),
    ),
    "OneHot": (("depth is a positive whole number", _is_depth),),
    "Pad": tuple(_scalars(2)),
    "QLinearConv": (
        *_POOL,
        _window_fits(3),
        *_scalars(1, 2, 6, 7),
        *_positive(1, 4, 6),
        _along(4, 3, 0),
        _along(5, 3, 0),
        _outputs(3, 8),
    ),
    "QLinearMatMul": (*_scalars(6, 7), *_positive(1, 4, 6)),
    "QuantizeLinear": _QUANTISED,
    "RMSNormalization": (("axis is within the rank, and something is normalised", _normalised),),
    "RNN": _recurrent(1),
    "Range": (("the operands are finite", _are_finite(0, 1, 2)),),
    "Reshape": (_at_least(1, -1.0),),
    "Resize": (*_positive(2, 3), ("scales are as many as axes", _scaled(2)), ("sizes are as many as axes", _scaled(3))),
    "ReverseSequence": (("the axes are 0 and 1, sequence_lens are [batch] and within the axis", _reversed),),
    "RotaryEmbedding": (("positions are within the caches", _rotated), _low("num_heads", 0)),
    "RoiAlign": (
        ("batch_indices are numbers of images", _batches),
        _low("output_height", 1),
        _low("output_width", 1),
    ),
    "ScatterElements": (("operands have the same rank", _same_rank), _same_shape(1, 2), _indices(0)),
    "ScatterND": (("indices are within the operand", _tuples), ("updates have the shape of slices", _updates)),
    "Slice": (_same_lengths(1, 2, 3, 4),),
    "SplitToSequence": (("split is positive, or adds up to the size of the axis", _split),),
    "SoftmaxCrossEntropyLoss": _LOSS,
    "Sum": _VARIADIC,
    "TfIdfVectorizer": (
        _lists_of_one_length("weights", "ngram_indexes"),
        ("the pool holds distinct n-grams of each length, one for each index", _grams),
    ),
    "TopK": (_at_least(1, 1.0),),
    "Upsample": (
        *_positive(1),
        ("scales are as many as axes", lambda node: len(node.numbers(1)) == len(node.shape(0) or ())),
    ),
}
"""Conditions by operator of the default domain, in words of its page; operands are counted from 0."""
