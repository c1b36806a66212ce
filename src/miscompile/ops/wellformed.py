"""Is a call one that its operator's page allows? The rules that onnx's checker and inference do not enforce.

Samplers keep them by themselves; fusion motifs in unusual settings, and reductions, do not. A call that breaks one is
no valid model, and whatever a compiler makes of it no bug. Source of each rule: the operator's page of the ONNX
documentation. Operands whose elements must be known for a rule, and are not, pass.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from miscompile.ops.spatial import window_of
from miscompile.ops.spec import Call, Operand, Shape

_FLAGS = frozenset({
    "keepdims", "transA", "transB", "ceil_mode", "count_include_pad", "allowzero", "exclusive", "reverse", "largest",
    "sorted", "select_last_index", "fmod", "noop_with_empty_axes", "saturate", "storage_order", "align_corners",
})  # fmt: skip
"""Integer attributes that stand for no and yes."""


def well_formed(call: Call) -> bool:
    """Tell whether `call` keeps the rules of its operator's page; operators without a rule here always do."""
    for name, attribute in call.attributes.items():
        if name in _FLAGS and attribute.value not in (0, 1):
            return False
    rule = _RULES.get(call.op)
    return rule is None or bool(call.domain) or rule(call)


def broadcasts_to(shape: Shape, goal: Shape) -> bool:
    """Tell whether `shape` broadcasts to `goal` in one direction: the result has the shape `goal`."""
    tail = goal[len(goal) - len(shape) :] if len(shape) <= len(goal) else None
    return tail is not None and all(have in (1, want) for have, want in zip(shape, tail, strict=True))


def different_axes(axes: Sequence[int], rank: int) -> bool:
    """Tell whether `axes` lie in [-rank, rank) and name different axes."""
    return all(-rank <= axis < rank for axis in axes) and len({axis % rank for axis in axes}) == len(axes)


def _shape(call: Call, index: int) -> Shape | None:
    """Shape of input `index`, None when it is absent."""
    return call.operand(index).shape if call.has(index) else None


def _known(call: Call, index: int) -> tuple[int, ...] | None:
    """Elements of structural input `index`; None when it is absent or not known."""
    value = call.operand(index).value if call.has(index) else None
    return None if value is None else tuple(int(item) for item in value.reshape(-1))


def _scalars(*places: int) -> Callable[[Call], bool]:
    """Rule: these inputs have rank 0, where they are present."""
    return lambda call: all(_shape(call, place) in (None, ()) for place in places)


def _has_axis(default: int, *, beyond: bool = False) -> Callable[[Call], bool]:
    """Rule: attribute `axis` names an axis of the first input (`beyond`: or the place after the last one)."""

    def rule(call: Call) -> bool:
        rank, axis = call.operand(0).rank, call.integer("axis", default)
        return -rank <= axis < rank + beyond

    return rule


def _listed_axes(call: Call) -> bool:
    """Reductions, Squeeze: the axes, an attribute or an input, are different axes of the data."""
    axes = call.integers("axes") if "axes" in call.attributes else _known(call, 1)
    return axes is None or different_axes(axes, call.operand(0).rank)


def _unsqueeze(call: Call) -> bool:
    axes = call.integers("axes") if "axes" in call.attributes else _known(call, 1)
    return axes is None or different_axes(axes, call.operand(0).rank + len(axes))


def _prelu(call: Call) -> bool:
    return broadcasts_to(call.operand(1).shape, call.operand(0).shape)


def _dropout(call: Call) -> bool:
    """The ratio is a scalar in [0, 1), and nothing is trained."""
    if not _scalars(1, 2)(call) or call.has(2):
        return False
    return not call.has(1) or call.facts(1).inside(0.0, 0.999)


def _transpose(call: Call) -> bool:
    rank = call.operand(0).rank
    return sorted(call.integers("perm", range(rank))) == list(range(rank))


def _reshape(call: Call) -> bool:
    """The number of elements stays; a size that is to be worked out follows from the others."""
    shape, written = call.operand(0).shape, _known(call, 1)
    if written is None:
        return True
    copies = not call.integer("allowzero")
    if any(size < -1 for size in written) or written.count(-1) > 1 or (not copies and {0, -1} <= set(written)):
        return False
    if copies and any(size == 0 and place >= len(shape) for place, size in enumerate(written)):
        return False
    sizes = [shape[place] if size == 0 and copies else size for place, size in enumerate(written)]
    rest = math.prod(size for size in sizes if size >= 0)
    if -1 in written:
        return rest > 0 and math.prod(shape) % rest == 0
    return rest == math.prod(shape)


def _split(call: Call) -> bool:
    """Sizes add up to the axis; equal parts, of which from 18 on the last may be smaller, are none of them empty."""
    x, parts = call.operand(0), _known(call, 1)
    if not _has_axis(0)(call) or call.integer("num_outputs", call.outputs) != call.outputs:
        return False
    size = x.shape[call.integer("axis")]
    if call.has(1):
        given = call.operand(1).shape == (call.outputs,) and "num_outputs" not in call.attributes
        return given and (parts is None or (min(parts) >= 0 and sum(parts) == size))
    chunk = -(-size // call.outputs)
    return size % call.outputs == 0 or ("num_outputs" in call.attributes and size > (call.outputs - 1) * chunk)


def _expand(call: Call) -> bool:
    sizes = _known(call, 1)
    return call.operand(1).rank == 1 and (sizes is None or min(sizes, default=0) >= 0)


def _tile(call: Call) -> bool:
    counts = _known(call, 1)
    return call.operand(1).shape == (call.operand(0).rank,) and (counts is None or min(counts, default=0) >= 0)


def _blocks(call: Call) -> bool:
    """DepthToSpace and SpaceToDepth: images whose depth, or height and width, the block size divides."""
    shape, block = call.operand(0).shape, call.integer("blocksize")
    if len(shape) != 4 or block < 1:
        return False
    if call.op == "DepthToSpace":
        return shape[1] % block**2 == 0
    return shape[2] % block == 0 and shape[3] % block == 0


def _slice(call: Call) -> bool:
    """One start, end and step for each axis; no axis twice; no step of zero."""
    count, rank = call.operand(1).shape, call.operand(0).rank
    if len(count) != 1 or any(_shape(call, place) not in (None, count) for place in (2, 3, 4)):
        return False
    axes = _known(call, 3) if call.has(3) else tuple(range(count[0])) if count[0] == rank else (rank,)
    return (axes is None or different_axes(axes, rank)) and 0 not in (_known(call, 4) or ())


def _pad(call: Call) -> bool:
    rank = call.operand(0).rank
    axes = _known(call, 3) if call.has(3) else tuple(range(rank))
    if axes is None or not different_axes(axes, rank) or not _scalars(2)(call):
        return False
    return call.operand(1).shape == (2 * len(axes),)


def _gemm(call: Call) -> bool:
    left, right = call.operand(0).shape, call.operand(1).shape
    if len(left) != 2 or len(right) != 2:
        return False
    rows, inner = left[::-1] if call.integer("transA") else left
    same, columns = right[::-1] if call.integer("transB") else right
    bias = _shape(call, 2)
    return inner == same and (bias is None or broadcasts_to(bias, (rows, columns)))


def _lines(zero: Operand | None, matrix: Shape, axis: int) -> bool:
    """A zero point or scale of a matrix: a scalar, or one number for each row (axis -2) or column (axis -1)."""
    if zero is None or not zero.shape:
        return True
    if len(matrix) < 2:
        return False
    other = -3 - axis
    whole = tuple(1 if place - len(matrix) == other else size for place, size in enumerate(matrix))
    return zero.shape == whole or (len(matrix) == 2 and zero.shape == (matrix[axis],))


def _optional(call: Call, index: int) -> Operand | None:
    return call.operand(index) if call.has(index) else None


def _matmul_integer(call: Call) -> bool:
    left, right = call.operand(0).shape, call.operand(1).shape
    return _lines(_optional(call, 2), left, -2) and _lines(_optional(call, 3), right, -1)


def _qlinear_matmul(call: Call) -> bool:
    left, right = call.operand(0).shape, call.operand(3).shape
    sides = ((1, left, -2), (4, right, -1))
    pairs = _positive(call, 1, 4, 6) and all(
        call.operand(place).shape == call.operand(place + 1).shape for place in (1, 4, 6)
    )
    return pairs and _scalars(6)(call) and all(_lines(call.operand(place), matrix, at) for place, matrix, at in sides)


def _window(call: Call, x: Shape, kernel: Shape | None = None) -> bool:
    """A window over the axes of `x` from 2 on, with `kernel` where the filters say it, that fits over them.

    Pads are not negative. The windows of a ConvTranspose slide over its output, so they always fit.
    """
    window, rank = window_of(call, kernel), len(x) - 2
    lengths = (window.rank, len(window.strides), len(window.dilations), len(window.pads) - rank)
    if rank < 1 or any(length != rank for length in lengths) or (kernel is not None and window.kernel != kernel):
        return False
    if window.auto_pad != "NOTSET" and any(window.pads):
        return False
    if min((*window.kernel, *window.strides, *window.dilations)) < 1 or min(window.pads) < 0:
        return False
    return call.op == "ConvTranspose" or window.fits(x[2:])


def _convolution(call: Call, x: Shape, filters: Shape, bias: Shape | None) -> bool:
    group = call.integer("group", 1)
    if len(filters) != len(x) or group < 1 or not _window(call, x, filters[2:]):
        return False
    if call.op == "ConvTranspose":
        features = filters[1] * group
        return x[1] == filters[0] and x[1] % group == 0 and bias in (None, (features,))
    return x[1] == filters[1] * group and filters[0] % group == 0 and bias in (None, filters[:1])


def _conv(call: Call) -> bool:
    return _convolution(call, call.operand(0).shape, call.operand(1).shape, _shape(call, 2))


def _conv_integer(call: Call) -> bool:
    filters = call.operand(1).shape
    zeros = _shape(call, 2) in (None, ()) and _shape(call, 3) in (None, (), filters[:1])
    return zeros and _convolution(call, call.operand(0).shape, filters, None)


def _qlinear_conv(call: Call) -> bool:
    filters = call.operand(3).shape
    scale = call.operand(4).shape
    numbers = (
        _scalars(1, 2, 6, 7)(call)
        and _positive(call, 1, 4, 6)
        and scale in ((), filters[:1])
        and call.operand(5).shape == scale
    )
    return numbers and _convolution(call, call.operand(0).shape, filters, _shape(call, 8))


def _pool(call: Call) -> bool:
    return "kernel_shape" in call.attributes and _window(call, call.operand(0).shape) and call.integer("p", 2) >= 1


def _positive(call: Call, *places: int) -> bool:
    scales = [call.operand(place) for place in places]
    return all(scale.value is None or scale.value.size == 0 or scale.facts.lo > 0 for scale in scales)


def _quantize(call: Call) -> bool:
    """One scale; or one for each place on the axis; or, with a block size, one for each block of places.

    No scale that is known is zero or negative.
    """
    x, scale, axis = call.operand(0).shape, call.operand(1).shape, call.integer("axis", 1)
    if _shape(call, 2) not in (None, scale) or not _positive(call, 1):
        return False
    block = call.integer("block_size")
    if not block:
        return not scale or (len(scale) == 1 and -len(x) <= axis < len(x) and scale[0] == x[axis])
    if block < 0 or len(scale) != len(x) or not -len(x) <= axis < len(x):
        return False
    at = axis % len(x)
    wanted = tuple(-(-size // block) if place == at else size for place, size in enumerate(x))
    return scale == wanted


def _channels(*places: int) -> Callable[[Call], bool]:
    """Rule: these inputs hold one number for each channel of the first input."""

    def rule(call: Call) -> bool:
        x = call.operand(0).shape
        channels = (x[1] if len(x) > 1 else 1,)
        return all(_shape(call, place) in (None, channels) for place in places)

    return rule


def _group_normalization(call: Call) -> bool:
    groups = call.integer("num_groups")
    return _channels(1, 2)(call) and groups > 0 and call.operand(0).shape[1] % groups == 0


def _layer_normalization(call: Call) -> bool:
    """Scale and bias broadcast to the normalised axes of the data."""
    x = call.operand(0)
    if not _has_axis(-1)(call):
        return False
    tail = x.shape[call.integer("axis", -1) % x.rank :]
    return all(shape is None or broadcasts_to(shape, tail) for shape in (_shape(call, 1), _shape(call, 2)))


def _einsum(call: Call) -> bool:
    """A letter stands for one size."""
    sizes: dict[str, int] = {}
    terms = call.text("equation").replace(" ", "").partition("->")[0].split(",")
    if len(terms) != len(call.inputs):
        return False
    for place, term in enumerate(terms):
        shape = call.operand(place).shape
        before, dots, after = term.partition("...")
        letters = before + after
        if len(letters) > len(shape) or (not dots and len(letters) != len(shape)):
            return False
        ends = (*shape[: len(before)], *shape[len(shape) - len(after) :]) if dots else shape
        if any(sizes.setdefault(letter, size) != size for letter, size in zip(letters, ends, strict=True)):
            return False
    return True


def _top_k(call: Call) -> bool:
    count = _known(call, 1)
    if call.operand(1).shape != (1,) or not _has_axis(-1)(call):
        return False
    return count is None or 0 <= count[0] <= call.operand(0).shape[call.integer("axis", -1)]


def _cum_sum(call: Call) -> bool:
    axis, rank = _known(call, 1), call.operand(0).rank
    return call.operand(1).rank == 0 and (axis is None or -rank <= axis[0] < rank)


_LAST, _FIRST = _has_axis(-1), _has_axis(0)

_RULES: Mapping[str, Callable[[Call], bool]] = {
    "Clip": _scalars(1, 2),
    "Range": _scalars(0, 1, 2),
    "PRelu": _prelu,
    "Dropout": _dropout,
    "Transpose": _transpose,
    "Reshape": _reshape,
    "Squeeze": _listed_axes,
    "Unsqueeze": _unsqueeze,
    "Flatten": _has_axis(1, beyond=True),
    "Expand": _expand,
    "Tile": _tile,
    "Split": _split,
    "DepthToSpace": _blocks,
    "SpaceToDepth": _blocks,
    "Slice": _slice,
    "Pad": _pad,
    "Concat": _FIRST,
    "Gather": _FIRST,
    "GatherElements": _FIRST,
    "ScatterElements": _FIRST,
    "Gemm": _gemm,
    "Einsum": _einsum,
    "MatMulInteger": _matmul_integer,
    "QLinearMatMul": _qlinear_matmul,
    "Conv": _conv,
    "ConvTranspose": _conv,
    "ConvInteger": _conv_integer,
    "QLinearConv": _qlinear_conv,
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), _pool),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), _quantize),
    "BatchNormalization": _channels(1, 2, 3, 4),
    "InstanceNormalization": _channels(1, 2),
    "GroupNormalization": _group_normalization,
    "LayerNormalization": _layer_normalization,
    "RMSNormalization": _layer_normalization,
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax", "LpNormalization"), _LAST),
    **dict.fromkeys(("ArgMax", "ArgMin"), _FIRST),
    "TopK": _top_k,
    "CumSum": _cum_sum,
    **dict.fromkeys(
        (
            "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
            "ReduceLogSumExp", "ReduceSumSquare",
        ),
        _listed_axes,
    ),
}  # fmt: skip
