"""Matrix products, convolutions, pooling and normalisation; images have their channels last in LiteRT."""

# ruff: noqa: ANN401 - symbolic tensors, and nested sequences of numbers

import math
from typing import Any

import numpy as np

from miscompile.targets.litert.tensors import emit, only, padded, paired, permuted, reshaped, same, tensor
from miscompile.targets.lowering.table import lowers
from miscompile.targets.lowering.windows import margins

VALID = 1


@lowers("MatMul")
def matmul(a: Any, b: Any) -> Any:
    """The product of matrices, broadcast over the axes before."""
    left = reshaped(a, (1, *a.shape)) if len(a.shape) == 1 else a
    right = reshaped(b, (*b.shape, 1)) if len(b.shape) == 1 else b
    if max(len(left.shape), len(right.shape)) > 5:
        raise NotImplementedError("MatMul has a lowering for five axes at most")
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    shape = (*batch, left.shape[-2], right.shape[-1])
    y = emit("BATCH_MATMUL", [only(left, "float32"), only(right, "float32")], shape, a.dtype, "BatchMatMulOptions")
    if len(a.shape) > 1 and len(b.shape) > 1:
        return y
    rows, columns = shape[-2:]
    return reshaped(y, (*batch, *[rows] * (len(a.shape) > 1), *[columns] * (len(b.shape) > 1)))


@lowers("Gemm")
def gemm(
    a: Any,
    b: Any,
    c: Any = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,  # noqa: N803 - the attribute's name
    transB: int = 0,  # noqa: N803
) -> Any:
    """alpha * a @ b + beta * c, with a and b transposed on request; LiteRT wants the rows of the second matrix."""
    a = permuted(only(a, "float32"), (1, 0)) if transA else only(a, "float32")
    b = b if transB else permuted(b, (1, 0))
    shape = (a.shape[0], b.shape[0])
    plain = c is not None and c.array is not None and c.shape == shape[1:] and alpha == beta == 1
    operands = [a, b, *([c] if plain else [])]
    y = emit("FULLY_CONNECTED", operands, shape, a.dtype, "FullyConnectedOptions")
    y = y if alpha == 1 else paired("MUL", y, tensor(alpha, "float32"), ("float32",), "MulOptions")
    if c is None or plain:
        return y
    c = c if beta == 1 else paired("MUL", c, tensor(beta, "float32"), ("float32",), "MulOptions")
    return paired("ADD", y, c, ("float32",), "AddOptions")


def flat_image(x: Any) -> Any:
    """Return images of one axis as images of two, of height one."""
    return reshaped(x, (*x.shape[:2], 1, *x.shape[2:])) if len(x.shape) == 3 else x


@lowers("Conv")
def conv(
    x: Any,
    w: Any,
    bias: Any = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Any = None,
    group: int = 1,
    kernel_shape: Any = None,
    pads: Any = None,
    strides: Any = None,
) -> Any:
    """A convolution over one or two axes, of all channels together or of each one alone."""
    count = len(w.shape) - 2
    if count not in (1, 2) or (group > 1 and w.shape[1] != 1):
        raise NotImplementedError("Conv has a lowering for one or two axes, and for groups of one channel")
    strides, dilations = strides or (1,) * count, dilations or (1,) * count
    sides = margins(x, w.shape[2:], strides, dilations, pads, auto_pad)
    strides, dilations, sides = (
        (1,) * (2 - count) + strides,
        (1,) * (2 - count) + dilations,
        [(0, 0)] * (2 - count) + sides,
    )
    image, kernel = flat_image(only(x, "float32")), flat_image(only(w, "float32"))
    image = permuted(padded(image, [(0, 0), (0, 0), *sides]), (0, 2, 3, 1))
    spans = [1 + d * (k - 1) for k, d in zip(kernel.shape[2:], dilations, strict=True)]
    sizes = [(size - span) // s + 1 for size, span, s in zip(image.shape[1:3], spans, strides, strict=True)]
    shape = (image.shape[0], *sizes, kernel.shape[0])
    fields = {"padding": VALID, "strideH": strides[0], "strideW": strides[1]}
    fields |= {"dilationHFactor": dilations[0], "dilationWFactor": dilations[1]}
    bias = tensor(np.zeros(kernel.shape[0]), "float32") if bias is None else bias
    if group > 1:
        fields["depthMultiplier"] = kernel.shape[0] // group
        kernel = permuted(kernel, (1, 2, 3, 0))
        y = emit("DEPTHWISE_CONV_2D", [image, kernel, bias], shape, x.dtype, "DepthwiseConv2DOptions", **fields)
    else:
        y = emit("CONV_2D", [image, permuted(kernel, (0, 2, 3, 1)), bias], shape, x.dtype, "Conv2DOptions", **fields)
    y = permuted(y, (0, 3, 1, 2))
    return reshaped(y, (*y.shape[:2], y.shape[3])) if count == 1 else y


@lowers("MaxPool", "AveragePool")
def pool(
    x: Any,
    *,
    kernel_shape: Any,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Any = None,
    pads: Any = None,
    storage_order: int = 0,
    strides: Any = None,
    op: str,
    outputs: int,
) -> Any:
    """The largest element or the mean of each window."""
    count = len(kernel_shape)
    if outputs > 1 or ceil_mode or count not in (1, 2) or max(dilations or (1,)) > 1:
        raise NotImplementedError("a pool has a lowering for whole windows without places over one or two axes")
    strides = strides or (1,) * count
    sides = margins(x, kernel_shape, strides, (1,) * count, pads, auto_pad)
    if op == "AveragePool" and any(map(any, sides)) and not count_include_pad:
        raise NotImplementedError("AveragePool without its padding has no lowering")
    strides, kernel = (1,) * (2 - count) + strides, (1,) * (2 - count) + kernel_shape
    sides = [(0, 0)] * (2 - count) + sides
    fill = 0.0 if op == "AveragePool" else float(np.finfo(np.float32).min)
    image = padded(flat_image(only(x, "float32")), [(0, 0), (0, 0), *sides], fill)
    image = permuted(image, (0, 2, 3, 1))
    sizes = [(size - k) // s + 1 for size, k, s in zip(image.shape[1:3], kernel, strides, strict=True)]
    code = "MAX_POOL_2D" if op == "MaxPool" else "AVERAGE_POOL_2D"
    fields = {"padding": VALID, "strideH": strides[0], "strideW": strides[1]}
    fields |= {"filterHeight": kernel[0], "filterWidth": kernel[1]}
    shape = (image.shape[0], *sizes, image.shape[3])
    y = permuted(emit(code, [image], shape, x.dtype, "Pool2DOptions", **fields), (0, 3, 1, 2))
    return reshaped(y, (*y.shape[:2], y.shape[3])) if count == 1 else y


@lowers("GlobalAveragePool", "GlobalMaxPool")
def global_pool(x: Any, *, op: str) -> Any:
    """The mean or the largest element of each channel."""
    axes = list(range(2, len(x.shape)))
    code = "MEAN" if op == "GlobalAveragePool" else "REDUCE_MAX"
    shape = (*x.shape[:2], *[1] * len(axes))
    return emit(code, [only(x, "float32"), tensor(axes, "int32")], shape, x.dtype, "ReducerOptions", keepDims=True)


def column(x: Any, rank: int) -> Any:
    """Return a vector, one number per channel, in a shape that broadcasts to images of `rank` axes."""
    return reshaped(only(x, "float32"), (1, math.prod(x.shape), *[1] * (rank - 2)))


@lowers("BatchNormalization")
def batch_norm(
    x: Any,
    scale: Any,
    bias: Any,
    mean: Any,
    var: Any,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
    outputs: int,
) -> Any:
    """x normalised by the given mean and variance."""
    if training_mode or outputs > 1:
        raise NotImplementedError("BatchNormalization has a lowering for inference only")
    rank, kinds = len(x.shape), ("float32",)
    scale, bias, mean, var = (column(one, rank) for one in (scale, bias, mean, var))
    spread = same("RSQRT", paired("ADD", var, tensor(epsilon, "float32"), kinds, "AddOptions"), *kinds)
    centred = paired("SUB", x, mean, kinds, "SubOptions")
    factor = paired("MUL", spread, scale, kinds, "MulOptions")
    return paired("ADD", paired("MUL", centred, factor, kinds, "MulOptions"), bias, kinds, "AddOptions")


@lowers("LayerNormalization")
def layer_norm(
    x: Any,
    scale: Any,
    bias: Any = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: str = "float32",
    outputs: int,
) -> Any:
    """The axes from `axis` on normalised together."""
    if outputs > 1:
        raise NotImplementedError("LayerNormalization has a lowering for its first result only")
    rank, kinds = len(x.shape), ("float32",)
    axes = tensor(list(range(axis % rank, rank)), "int32")
    shape = [size if i < axis % rank else 1 for i, size in enumerate(x.shape)]
    mean = emit("MEAN", [only(x, *kinds), axes], shape, x.dtype, "ReducerOptions", keepDims=True)
    squares = paired("SQUARED_DIFFERENCE", x, mean, kinds, "SquaredDifferenceOptions")
    var = emit("MEAN", [squares, axes], shape, x.dtype, "ReducerOptions", keepDims=True)
    spread = same("RSQRT", paired("ADD", var, tensor(epsilon, "float32"), kinds, "AddOptions"), *kinds)
    y = paired("MUL", paired("SUB", x, mean, kinds, "SubOptions"), spread, kinds, "MulOptions")
    y = paired("MUL", y, scale, kinds, "MulOptions")
    return y if bias is None else paired("ADD", y, bias, kinds, "AddOptions")
