"""The layers between DequantizeLinear and QuantizeLinear of a chain, and the operators that compute with integers.

A layer is a function of the chain and of the dequantised value of the layer before it (None: there is none), which it
uses if the shape fits. Sources: the operator pages of the ONNX documentation.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from miscompile.core.tensor import Tensor
from miscompile.graph.attributes import attributes
from miscompile.ops.spec import Call, Operand, Shape
from miscompile.ops.values import choose_range
from miscompile.producers.motifs.quantised.chain import QuantisedChain

Layer: TypeAlias = Callable[[QuantisedChain, Operand | None], Operand]
LayerStep: TypeAlias = Callable[[QuantisedChain], None]


def _ints(chain: QuantisedChain, values: Sequence[int]) -> Operand:
    return chain.constant(Tensor("int64", np.array(values, np.int64)))


def _given(chain: QuantisedChain, x: Operand | None, rank: tuple[int, int], make: Callable[[], Operand]) -> Operand:
    """Return the value of the layer before if it has a fitting rank, else another one, quantised and dequantised."""
    if x is not None and rank[0] <= x.rank <= rank[1]:
        return x
    return chain.through(make())


def _any(chain: QuantisedChain, x: Operand | None) -> Operand:
    return _given(chain, x, (1, 4), chain.any)


def _image(chain: QuantisedChain, x: Operand | None) -> Operand:
    fine = x is not None and x.rank == 4 and min(x.shape[2:]) > 2
    return _given(chain, x if fine else None, (4, 4), chain.image)


def _convolution(chain: QuantisedChain, x: Operand | None) -> Operand:
    """Conv or ConvTranspose with quantised filters and, where there is a bias, one in int32."""
    rng, image = chain.scope.rng, _image(chain, x)
    channels, out, kernel = image.shape[1], rng.randint(1, 4), rng.choice((1, 2, 3))
    turned = rng.random() < 0.15
    group = channels if not turned and rng.random() < 0.2 else 1
    if group > 1:
        out = channels
    shape = (channels, out, kernel, kernel) if turned else (out, channels // group, kernel, kernel)
    filters, scale = chain.weight(shape, 1 if turned else 0)
    pad = rng.choice((0, 0, 1)) if kernel > 1 else 0
    operands = [image, filters, chain.bias(out, image, scale)]
    return chain.apply(
        "ConvTranspose" if turned else "Conv",
        *operands[: 2 if operands[2] is None else 3],
        group=group if group > 1 else None,
        pads=(pad,) * 4 if pad else None,
        strides=(2, 2) if rng.random() < 0.2 else None,
    )


def _product(chain: QuantisedChain, x: Operand | None) -> Operand:
    """MatMul with quantised weights, some in blocks, sometimes followed by a bias."""
    rng, left = chain.scope.rng, _given(chain, x, (2, 3), chain.matrix)
    columns = rng.randint(1, 6)
    right, scale = chain.weight((left.shape[-1], columns), 1, blocks=True)
    result = chain.apply("MatMul", left, right)
    bias = chain.bias(columns, left, scale) if rng.random() < 0.4 else None
    return result if bias is None else chain.apply("Add", result, bias)


def _float_product(chain: QuantisedChain, _: Operand | None) -> Operand:
    """MatMul of a plain float with weights that are stored as integers, as compressed models have it."""
    left = chain.matrix()
    right, _scale = chain.weight((left.shape[-1], chain.scope.rng.randint(1, 8)), 1, blocks=True)
    return chain.apply("MatMul", left, right)


def _gemm(chain: QuantisedChain, x: Operand | None) -> Operand:
    rng, left = chain.scope.rng, _given(chain, x, (2, 2), chain.matrix)
    if left.rank != 2:
        return _product(chain, left)
    columns, turned = rng.randint(1, 6), rng.random() < 0.5
    inner = left.shape[1]
    right, scale = chain.weight((columns, inner) if turned else (inner, columns), 0 if turned else 1)
    bias = chain.bias(columns, left, scale)
    operands = (left, right) if bias is None else (left, right, bias)
    return chain.apply("Gemm", *operands, transB=1 if turned else None)


def _pair(op: str) -> Layer:
    """A layer of an operator of two values: of the same scale or another, of one value twice, or with a constant."""

    def layer(chain: QuantisedChain, x: Operand | None) -> Operand:
        rng, left = chain.scope.rng, _any(chain, x)
        chance = rng.random()
        if chance < 0.2:
            return chain.apply(op, left, left)
        shape = left.shape if chance < 0.7 else left.shape[-1:]
        if chance > 0.85:
            right, _ = chain.weight(shape, 0)
        else:
            right = chain.through(chain.value(lambda s: s == shape, shape))
        return chain.apply(op, *((right, left) if rng.random() < 0.3 else (left, right)))

    return layer


def _unary(op: str, **found: int | float) -> Layer:
    def layer(chain: QuantisedChain, x: Operand | None) -> Operand:
        return chain.apply(op, _any(chain, x), **found)

    return layer


def _pool(op: str) -> Layer:
    def layer(chain: QuantisedChain, x: Operand | None) -> Operand:
        image = _image(chain, x)
        if op.startswith("Global"):
            return chain.apply(op, image)
        pads = (1, 0, 1, 0) if chain.scope.rng.random() < 0.25 else None
        return chain.apply(op, image, kernel_shape=(2, 2), pads=pads)

    return layer


def _transpose(chain: QuantisedChain, x: Operand | None) -> Operand:
    given = _any(chain, x)
    return chain.apply("Transpose", given, perm=chain.scope.rng.sample(range(given.rank), given.rank))


def _reshape(chain: QuantisedChain, x: Operand | None) -> Operand:
    given, rng = _any(chain, x), chain.scope.rng
    form = rng.choice(("flat", "flatten", "unsqueeze", "squeeze", "rows"))
    if form == "unsqueeze" and given.rank < 4:
        return chain.apply("Unsqueeze", given, _ints(chain, [rng.randint(0, given.rank)]))
    if form == "squeeze" and 1 in given.shape:
        return chain.apply("Squeeze", given, _ints(chain, [given.shape.index(1)]))
    if form == "flatten":
        return chain.apply("Flatten", given, axis=rng.randint(0, given.rank))
    return chain.apply("Reshape", given, _ints(chain, [-1] if form == "flat" else [given.shape[0], -1]))


def _slice(chain: QuantisedChain, x: Operand | None) -> Operand:
    given, rng = _any(chain, x), chain.scope.rng
    axis = rng.randrange(given.rank)
    size = given.shape[axis]
    if rng.random() < 0.4:
        return chain.apply("Gather", given, _ints(chain, [rng.randrange(size) for _ in range(2)]), axis=axis)
    start = rng.randrange(size)
    return chain.apply(
        "Slice", given, _ints(chain, [start]), _ints(chain, [rng.randint(start + 1, size)]), _ints(chain, [axis])
    )


def _concat(chain: QuantisedChain, x: Operand | None) -> Operand:
    """Concat of values of equal or different scales; one value may be repeated."""
    first, rng = _any(chain, x), chain.scope.rng
    parts = [first]
    for _ in range(rng.choice((1, 1, 2))):
        again = rng.random() < 0.2
        parts.append(first if again else chain.through(chain.value(lambda s: s == first.shape, first.shape)))
    return chain.apply("Concat", *parts, axis=rng.randrange(first.rank))


def _split(chain: QuantisedChain, x: Operand | None) -> Operand:
    """Split; each part is quantised again, the last one by the chain."""
    given, rng = _any(chain, x), chain.scope.rng
    axis = rng.randrange(given.rank)
    first = rng.randint(0, given.shape[axis])
    sizes = _ints(chain, [first, given.shape[axis] - first])
    parts = chain.scope.apply(Call("Split", (given, sizes), attributes({"axis": axis}), 2))
    chain.planted.results += parts
    chain.through(parts[0])
    return parts[1]


def _pad(chain: QuantisedChain, x: Operand | None) -> Operand:
    given, rng = _any(chain, x), chain.scope.rng
    return chain.apply("Pad", given, _ints(chain, [rng.randint(0, 1) for _ in range(2 * given.rank)]))


def _resize(chain: QuantisedChain, x: Operand | None) -> Operand:
    scales = chain.constant(Tensor("float32", np.array([1, 1, 2, 2], np.float32)))
    image = _image(chain, x)
    return chain.apply(
        "Resize", image, None, scales,
        mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor",
    )  # fmt: skip


def _where(chain: QuantisedChain, x: Operand | None) -> Operand:
    given = _any(chain, x)
    other = chain.through(chain.value(lambda s: s == given.shape, given.shape))
    condition = chain.scope.new_input("bool", given.shape, choose_range("bool", chain.scope.style))
    return chain.apply("Where", condition, given, other)


def _mean(chain: QuantisedChain, x: Operand | None) -> Operand:
    given = _any(chain, x)
    axis = chain.scope.rng.randrange(given.rank)
    if chain.scope.opset < 18:
        return chain.apply("ReduceMean", given, axes=[axis])
    return chain.apply("ReduceMean", given, _ints(chain, [axis]))


LAYERS: tuple[Layer, ...] = (
    *(_convolution,) * 4, *(_product,) * 3, _float_product, *(_gemm,) * 2,
    *(_pair("Add"),) * 2, *(_pair("Mul"),) * 2, _pair("Sub"), _pair("Max"), _pair("Min"),
    _unary("Relu"), _unary("LeakyRelu", alpha=0.25), _unary("Sigmoid"), _unary("Tanh"), _unary("Identity"),
    _unary("Softmax", axis=-1), _unary("HardSigmoid"), _unary("Abs"), _unary("Neg"), _unary("ArgMax", axis=0),
    _pool("MaxPool"), _pool("AveragePool"), _pool("GlobalAveragePool"), _resize, _where, _mean,
    *(_transpose,) * 2, *(_reshape,) * 2, _slice, *(_concat,) * 2, _split, _pad,
)  # fmt: skip
"""Layers to choose from, those that runtimes fuse more often."""


def _stored(chain: QuantisedChain, shape: Shape, kind: str) -> Operand:
    return chain.scope.drawn_constant(kind, shape, choose_range(kind, chain.scope.style))


def _qlinear_product(chain: QuantisedChain) -> None:
    """QuantizeLinear, QLinearMatMul, DequantizeLinear."""
    rng, x = chain.scope.rng, chain.matrix()
    left, right, result = (chain.steps(rng.choice(("uint8", "int8"))) for _ in range(3))
    columns = rng.randint(1, 5)
    q = chain.quantise(x, left)
    y = chain.apply(
        "QLinearMatMul", q, left.scale, _zero(chain, left.zero), _stored(chain, (x.shape[-1], columns), right.kind),
        right.scale, _zero(chain, right.zero), result.scale, _zero(chain, result.zero),
    )  # fmt: skip
    chain.dequantise(y, result)


def _qlinear_conv(chain: QuantisedChain) -> None:
    """QuantizeLinear, QLinearConv, DequantizeLinear."""
    rng, x = chain.scope.rng, chain.image()
    left, right, result = (chain.steps(rng.choice(("uint8", "int8"))) for _ in range(3))
    out = rng.randint(1, 4)
    inputs = [
        chain.quantise(x, left), left.scale, _zero(chain, left.zero),
        _stored(chain, (out, x.shape[1], 2, 2), right.kind), right.scale, _zero(chain, right.zero),
        result.scale, _zero(chain, result.zero),
    ]  # fmt: skip
    if rng.random() < 0.5:
        inputs.append(_stored(chain, (out,), "int32"))
    chain.dequantise(chain.apply("QLinearConv", *inputs), result)


def _zero(chain: QuantisedChain, given: Operand | None) -> Operand:
    """Return a zero point; an omitted one elsewhere means zero in uint8."""
    return given if given is not None else chain.constant(Tensor("uint8", np.array(0, np.uint8)))


def _integer_product(chain: QuantisedChain) -> None:
    """QuantizeLinear, MatMulInteger, Cast, Mul: dequantised explicitly by the product of the scales."""
    rng, x = chain.scope.rng, chain.matrix()
    left, right = (chain.steps(rng.choice(("uint8", "int8"))) for _ in range(2))
    columns = rng.randint(1, 5)
    stored = _stored(chain, (x.shape[-1], columns), right.kind)
    q = chain.quantise(x, left)
    y = chain.apply("MatMulInteger", q, stored, _zero(chain, left.zero), _zero(chain, right.zero))
    _by_hand(chain, y, left.scale, right.scale, columns)


def _integer_conv(chain: QuantisedChain) -> None:
    """QuantizeLinear, ConvInteger, Cast, Mul."""
    rng, x = chain.scope.rng, chain.image()
    left, right = chain.steps("uint8"), chain.steps(rng.choice(("uint8", "int8")))
    stored = _stored(chain, (rng.randint(1, 3), x.shape[1], 2, 2), right.kind)
    y = chain.apply("ConvInteger", chain.quantise(x, left), stored, _zero(chain, left.zero))
    _by_hand(chain, y, left.scale, right.scale, 0)


def _dynamic(chain: QuantisedChain) -> None:
    """DynamicQuantizeLinear, MatMulInteger, Cast, Mul; the data have one sign, as the operator's guard requires."""
    rng, x = chain.scope.rng, chain.matrix()
    shifted = chain.apply("Add", chain.apply("Abs", x), chain.number(rng.choice((0.5, 1.0))))
    data = shifted if rng.random() < 0.7 else chain.apply("Neg", shifted)
    q, scale, zero = chain.scope.apply(Call("DynamicQuantizeLinear", (data,), outputs=3))
    chain.planted.results += (q, scale, zero)
    right, columns = chain.steps(rng.choice(("uint8", "int8"))), rng.randint(1, 5)
    stored = _stored(chain, (x.shape[-1], columns), right.kind)
    y = chain.apply("MatMulInteger", q, stored, zero, _zero(chain, right.zero))
    _by_hand(chain, y, scale, right.scale, columns)


def _by_hand(chain: QuantisedChain, y: Operand, left: Operand, right: Operand, columns: int) -> None:
    """Dequantise int32 sums: a Cast, a Mul by the product of the scales, and sometimes a bias of `columns` elements."""
    rng = chain.scope.rng
    both = chain.apply("Mul", left, right)
    result = chain.apply("Mul", chain.apply("Cast", y, to=1), both)
    if columns and rng.random() < 0.4:
        bias = chain.scope.drawn_constant("float32", (columns,), choose_range("float32", chain.scope.style))
        result = chain.apply("Add", result, bias)
    if rng.random() < 0.3:
        chain.apply("Relu", result)


INTEGER: tuple[LayerStep, ...] = (_qlinear_product, _qlinear_conv, _integer_product, _integer_conv, _dynamic, _dynamic)
"""Chains around operators that take integers themselves."""
