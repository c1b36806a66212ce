"""Rules of layers: products, convolutions, pooling, quantisation, normalisation.

Source of each rule: the operator's page of the ONNX documentation.
"""

from miscompile.ops.spatial import window_of
from miscompile.ops.spec import Call, Operand, Shape
from miscompile.ops.wellformed.rules import CallRule, CallRules, broadcasts_to, has_axis, scalars, shape_of


def _gemm(call: Call) -> bool:
    left, right = call.operand(0).shape, call.operand(1).shape
    if len(left) != 2 or len(right) != 2:
        return False
    rows, inner = left[::-1] if call.integer("transA") else left
    same, columns = right[::-1] if call.integer("transB") else right
    bias = shape_of(call, 2)
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
    return pairs and scalars(6)(call) and all(_lines(call.operand(place), matrix, at) for place, matrix, at in sides)


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
    return _convolution(call, call.operand(0).shape, call.operand(1).shape, shape_of(call, 2))


def _conv_integer(call: Call) -> bool:
    filters = call.operand(1).shape
    zeros = shape_of(call, 2) in (None, ()) and shape_of(call, 3) in (None, (), filters[:1])
    return zeros and _convolution(call, call.operand(0).shape, filters, None)


def _qlinear_conv(call: Call) -> bool:
    filters = call.operand(3).shape
    scale = call.operand(4).shape
    numbers = (
        scalars(1, 2, 6, 7)(call)
        and _positive(call, 1, 4, 6)
        and scale in ((), filters[:1])
        and call.operand(5).shape == scale
    )
    return numbers and _convolution(call, call.operand(0).shape, filters, shape_of(call, 8))


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
    if shape_of(call, 2) not in (None, scale) or not _positive(call, 1):
        return False
    block = call.integer("block_size")
    if not block:
        return not scale or (len(scale) == 1 and -len(x) <= axis < len(x) and scale[0] == x[axis])
    if block < 0 or len(scale) != len(x) or not -len(x) <= axis < len(x):
        return False
    at = axis % len(x)
    wanted = tuple(-(-size // block) if place == at else size for place, size in enumerate(x))
    return scale == wanted


def _channels(*places: int) -> CallRule:
    """Rule: these inputs hold one number for each channel of the first input."""

    def rule(call: Call) -> bool:
        x = call.operand(0).shape
        channels = (x[1] if len(x) > 1 else 1,)
        return all(shape_of(call, place) in (None, channels) for place in places)

    return rule


def _group_normalization(call: Call) -> bool:
    """Groups divide the channels. The Reshape in the operator's function body is not defined for an empty batch."""
    groups = call.integer("num_groups")
    if 0 in call.operand(0).shape:
        return False
    return _channels(1, 2)(call) and groups > 0 and call.operand(0).shape[1] % groups == 0


def _layer_normalization(call: Call) -> bool:
    """Scale and bias broadcast to the normalised axes of the data, and these are not empty."""
    x = call.operand(0)
    if not has_axis(-1)(call):
        return False
    tail = x.shape[call.integer("axis", -1) % x.rank :]
    return 0 not in tail and all(
        shape is None or broadcasts_to(shape, tail) for shape in (shape_of(call, 1), shape_of(call, 2))
    )


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


LAYER_RULES: CallRules = {
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
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax", "LpNormalization"), has_axis(-1)),
}
