"""Matrix products, convolutions, pooling and resizing; ncnn has no batches, so a batch must have one image."""

# ruff: noqa: ANN401 - symbolic tensors, and nested sequences of numbers

from typing import Any

import numpy as np

from miscompile.targets.lowering.table import lowers
from miscompile.targets.lowering.windows import margins
from miscompile.targets.ncnn.tensors import NcnnValue, as_blob, constant, count_of, emit, paired, slim


@lowers("MatMul")
def matmul(a: Any, b: Any) -> Any:
    """The product of matrices, broadcast over the axes before; a constant matrix makes it an inner product."""
    left, right = slim(a.shape), slim(b.shape)
    if b.array is not None and len(b.shape) == 2 and len(left) < 3 and len(a.shape) > 0:
        weights = [(constant(b, "b").T, 0)]
        params = {0: right[1], 1: 0, 2: count_of(right)}
        sizes = (*left[:-1], right[1])
        return emit("InnerProduct", [as_blob(a, left)], (*a.shape[:-1], right[1]), params, weights, sizes)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*batch, *a.shape[-2:-1], *b.shape[-1:]) if len(b.shape) > 1 else (*batch, *a.shape[-2:-1])
    if len(a.shape) > 1 and len(b.shape) > 1:
        count = len(slim((*batch, 2, 2)))
        left, right = ((1,) * (count - len(one)) + tuple(one)[-count:] for one in (a.shape, b.shape))
        sizes = (*np.broadcast_shapes(left[:-2], right[:-2]), left[-2], right[-1])
    elif len(a.shape) == 1 and len(b.shape) == 1:
        shape, sizes = (), (1,)
    else:
        sizes = (*right[:-2], right[-1]) if len(a.shape) == 1 else left[:-1]
        shape = (*b.shape[:-2], b.shape[-1]) if len(a.shape) == 1 else a.shape[:-1]
    return emit("MatMul", [as_blob(a, left), as_blob(b, right)], shape, {0: 0}, sizes=sizes or (1,))


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
    """alpha * a @ b + beta * c, with a and b transposed on request; ncnn multiplies the sum by alpha."""
    if alpha == 0:
        raise NotImplementedError("Gemm has no lowering for alpha 0")
    rows, inner = (a.shape[1], a.shape[0]) if transA else a.shape
    columns = b.shape[0] if transB else b.shape[1]
    operands, weights = [as_blob(a, a.shape)], []
    params = {0: float(alpha), 1: float(beta) / float(alpha), 2: transA, 3: transB, 8: columns, 9: inner}
    if b.array is None:
        operands.append(as_blob(b, b.shape))
        params |= {8: 0, 9: 0}
    else:
        params[5] = 1
        weights.append((constant(b, "b"), 0))
    if c is None:
        params |= {6: 1, 10: -1}
    elif c.array is not None and b.array is not None and c.shape in ((columns,), (1, columns)):
        params |= {6: 1, 10: 4}
        weights.append((constant(c, "c"), 0))
    else:
        operands.append(as_blob(c, c.shape or (1,)))
    return emit("Gemm", operands, (rows, columns), params, weights)


SPATIAL = {1: "1D", 2: "", 3: "3D"}
"""What the name of a layer ends with, by its number of spatial axes."""


def window(kernel: Any, strides: Any, dilations: Any, sides: Any, keys: Any) -> Any:
    """Return the parameters of a sliding window, whose numbers are `keys` for the kernel, dilations, strides, and the
    padding before and after, each from the innermost axis outwards."""
    if min(min(side) for side in sides) < 0:
        raise NotImplementedError("negative padding has no lowering")
    settings = (kernel, dilations, strides, [before for before, _ in sides], [after for _, after in sides])
    found: dict[int, int] = {}
    for numbers, values in zip(keys, settings, strict=True):
        found |= dict(zip(numbers, reversed(values), strict=False)) if numbers else {}
    return found


CONVOLVING = ((1, 11, 21), (2, 12, 22), (3, 13, 23), (4, 14, 24), (15, 16, 17))
POOLING = ((1, 11, 21), (), (2, 12, 22), (3, 13, 23), (14, 15, 16))


def sized(x: Any, kernel: Any, strides: Any, dilations: Any, sides: Any) -> Any:
    """Return the sizes of the spatial axes that a sliding window leaves."""
    found = []
    for size, k, s, d, (before, after) in zip(x.shape[2:], kernel, strides, dilations, sides, strict=True):
        found.append((size + before + after - d * (k - 1) - 1) // s + 1)
    return found


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
    """A convolution of one image over one to three axes; weights that are no constants are operands."""
    kernel, count = w.shape[2:], len(w.shape) - 2
    fixed = w.array is not None and (bias is None or bias.array is not None)
    if x.shape[0] != 1 or count not in SPATIAL or (count == 3 and not fixed):
        raise NotImplementedError("Conv has a lowering for one image of one to three axes, and constants for three")
    strides, dilations = strides or (1,) * count, dilations or (1,) * count
    sides = margins(x, kernel, strides, dilations, pads, auto_pad)
    params = window(kernel, strides, dilations, sides, CONVOLVING)
    params |= {0: w.shape[0], 5: int(bias is not None), 6: count_of(w.shape)}
    layer = f"Convolution{'DepthWise' if group > 1 else ''}{SPATIAL[count]}"
    params |= {7: group} if group > 1 else {}
    operands, weights = [as_blob(x, x.shape[1:])], []
    if fixed:
        weights = [(constant(w, "w"), 0), *([] if bias is None else [(constant(bias, "bias"), 1)])]
    else:
        operands += [as_blob(one, one.shape) for one in (w, bias) if one is not None]
        params[19] = 1
    shape = (1, w.shape[0], *sized(x, kernel, strides, dilations, sides))
    return emit(layer, operands, shape, params, weights, shape[1:])


@lowers("ConvTranspose")
def conv_transpose(
    x: Any,
    w: Any,
    bias: Any = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Any = None,
    group: int = 1,
    kernel_shape: Any = None,
    output_padding: Any = None,
    pads: Any = None,
    strides: Any = None,
) -> Any:
    """A transposed convolution of one image with constant weights, which ncnn orders by their results first."""
    kernel, count = w.shape[2:], len(w.shape) - 2
    if x.shape[0] != 1 or count not in SPATIAL or auto_pad not in ("NOTSET", "VALID"):
        raise NotImplementedError("ConvTranspose has a lowering for one image with explicit padding")
    strides, dilations = strides or (1,) * count, dilations or (1,) * count
    more = output_padding or (0,) * count
    sides = margins(x, kernel, strides, dilations, pads, auto_pad)
    inner, outer = w.shape[0] // group, w.shape[1]
    ordered = np.swapaxes(constant(w, "w").reshape(group, inner, outer, -1), 1, 2)
    params = window(kernel, strides, dilations, sides, CONVOLVING)
    params |= dict(zip((18, 19, 20), reversed(more), strict=False))
    params |= {0: outer * group, 5: int(bias is not None), 6: count_of(w.shape)}
    layer = f"Deconvolution{'DepthWise' if group > 1 else ''}{SPATIAL[count]}"
    params |= {7: group} if group > 1 else {}
    weights = [(ordered, 0), *([] if bias is None else [(constant(bias, "bias"), 1)])]
    sizes = []
    for size, k, s, d, (before, after), p in zip(x.shape[2:], kernel, strides, dilations, sides, more, strict=True):
        sizes.append((size - 1) * s + d * (k - 1) + 1 + p - before - after)
    shape = (1, outer * group, *sizes)
    return emit(layer, [as_blob(x, x.shape[1:])], shape, params, weights, shape[1:])


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
    """The largest element or the mean of each window; the images of a batch are further channels."""
    count = len(kernel_shape)
    if outputs > 1 or ceil_mode or count not in SPATIAL or max(dilations or (1,)) > 1:
        raise NotImplementedError("a pool has a lowering for whole windows without places over one to three axes")
    strides, ones = strides or (1,) * count, (1,) * count
    sides = margins(x, kernel_shape, strides, ones, pads, auto_pad)
    params = window(kernel_shape, strides, ones, sides, POOLING)
    params |= {0: int(op == "AveragePool"), 5: 1, 6: int(bool(count_include_pad))}
    sizes = sized(x, kernel_shape, strides, ones, sides)
    channels = count_of(x.shape[:2])
    blob = as_blob(x, (channels, *x.shape[2:]))
    return emit(f"Pooling{SPATIAL[count]}", [blob], (*x.shape[:2], *sizes), params, sizes=(channels, *sizes))


@lowers("GlobalAveragePool", "GlobalMaxPool")
def global_pool(x: Any, *, op: str) -> Any:
    """The mean or the largest element of each channel."""
    count, channels = len(x.shape) - 2, count_of(x.shape[:2])
    if count not in SPATIAL:
        raise NotImplementedError("a global pool has a lowering over one to three axes only")
    params = {0: int(op == "GlobalAveragePool"), 4: 1}
    blob = as_blob(x, (channels, *x.shape[2:]))
    return emit(f"Pooling{SPATIAL[count]}", [blob], (*x.shape[:2], *[1] * count), params, sizes=(channels,))


@lowers("LRN")
def local_response_norm(x: Any, *, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0, size: int) -> Any:
    """x divided by a power of the mean square over neighbouring channels."""
    if x.shape[0] != 1 or len(x.shape) != 4 or size % 2 == 0:
        raise NotImplementedError("LRN has a lowering for one image and an odd number of channels only")
    params = {0: 0, 1: size, 2: float(alpha), 3: float(beta), 4: float(bias)}
    return emit("LRN", [as_blob(x, x.shape[1:])], x.shape, params)


@lowers("Resize", static=(2, 3))
def resize(
    x: Any,
    roi: Any = None,
    scales: Any = None,
    sizes: Any = None,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Any:
    """One image in another size, in the forms that ncnn has too."""
    rank, aligned_corners = len(x.shape), coordinate_transformation_mode == "align_corners"
    if sizes is None:
        sizes = [size * scale for size, scale in zip(x.shape, scales, strict=True)]
    least = {"nearest": 1, "linear": 2, "cubic": 4}[mode]
    whole_sizes = [int(size) for size in sizes]
    if rank not in (3, 4) or x.shape[0] != 1 or tuple(whole_sizes[:2]) != x.shape[:2] or whole_sizes != list(sizes):
        raise NotImplementedError("Resize has a lowering for the last axes of one image, and whole sizes, only")
    pairs = list(zip(x.shape[2:], whole_sizes[2:], strict=True))
    if mode == "nearest":
        good = coordinate_transformation_mode == "asymmetric" and nearest_mode == "floor"
        good = good and all(new % old == 0 or old % new == 0 for old, new in pairs)
    else:
        good = coordinate_transformation_mode in ("half_pixel", "align_corners") and cubic_coeff_a == -0.75
    if not good or any(old < least or (aligned_corners and new < 2) for old, new in pairs):
        raise NotImplementedError("Resize with these attributes has no lowering")
    params = {0: {"nearest": 1, "linear": 2, "cubic": 3}[mode], 3: whole_sizes[2] if rank == 4 else 1}
    params |= {4: whole_sizes[-1], 6: int(aligned_corners)}
    return emit("Interp", [as_blob(x, x.shape[1:])], whole_sizes, params, sizes=whole_sizes[1:])


def column(x: Any, rank: int) -> Any:
    """Return a vector, one number per channel, in a shape that broadcasts to images of `rank` axes."""
    shape = (1, count_of(x.shape), *[1] * (rank - 2))
    return NcnnValue(shape, as_blob(x, slim(shape)))


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
    """x normalised by a constant mean and variance."""
    if training_mode or outputs > 1 or x.shape[0] != 1 or len(x.shape) not in (2, 3, 4, 5):
        raise NotImplementedError("BatchNormalization has a lowering for inference on one image only")
    weights = [(constant(one, "a statistic"), 1) for one in (scale, mean, var, bias)]
    sizes = x.shape[1:]
    return emit("BatchNorm", [as_blob(x, sizes)], x.shape, {0: sizes[0], 1: float(epsilon)}, weights, sizes)


@lowers("InstanceNormalization")
def instance_norm(x: Any, scale: Any, bias: Any, *, epsilon: float = 1e-5) -> Any:
    """Each channel normalised alone; the images of a batch are further channels."""
    channels, spatial = count_of(x.shape[:2]), x.shape[2:]
    several(count_of(spatial))
    sizes = (channels, *([1] if len(spatial) == 1 else []), *spatial)
    params = {0: channels, 1: float(epsilon), 2: 0}
    if x.shape[0] == 1 and scale.array is not None and bias.array is not None:
        params[2], weights = 1, [(constant(scale, "scale"), 1), (constant(bias, "bias"), 1)]
        return emit("InstanceNorm", [as_blob(x, sizes)], x.shape, params, weights, sizes)
    y = emit("InstanceNorm", [as_blob(x, sizes)], x.shape, params, (), sizes)
    return paired("add", paired("mul", y, column(scale, len(x.shape))), column(bias, len(x.shape)))


@lowers("GroupNormalization")
def group_norm(
    x: Any, scale: Any, bias: Any, *, epsilon: float = 1e-5, num_groups: int, stash_type: str = "float32", opset: int
) -> Any:
    """Groups of channels normalised together."""
    if opset < 21 or x.shape[0] != 1:
        raise NotImplementedError("GroupNormalization has a lowering for one image, and for one scale per channel")
    several(count_of(x.shape[1:]) // num_groups)
    sizes, params = x.shape[1:], {0: num_groups, 1: x.shape[1], 2: float(epsilon), 3: 0}
    if scale.array is not None and bias.array is not None:
        params[3], weights = 1, [(constant(scale, "scale"), 1), (constant(bias, "bias"), 1)]
        return emit("GroupNorm", [as_blob(x, sizes)], x.shape, params, weights, sizes)
    y = emit("GroupNorm", [as_blob(x, sizes)], x.shape, params, (), sizes)
    return paired("add", paired("mul", y, column(scale, len(x.shape))), column(bias, len(x.shape)))


def several(count: int) -> None:
    """Raise NotImplementedError for the normalisation of one element: its difference from itself is 0, and ncnn
    subtracts two products of it, which may differ by a rounding that only this case makes visible."""
    if count == 1:
        raise NotImplementedError("a normalisation of one element has no lowering")


def normed(layer: str, x: Any, axis: int, epsilon: float, scale: Any, bias: Any) -> Any:
    """Return the axes from `axis` on normalised together; ncnn's two layers for this have the same parameters."""
    rank, sizes = len(x.shape), slim(x.shape)
    count = rank - axis % rank
    size = count_of(x.shape[rank - count :])
    several(size)
    if count >= len(sizes):
        if count_of(sizes) != size:
            raise NotImplementedError(f"{layer} of a batch has no lowering")
        sizes = (size,)
    blob, params = as_blob(x, sizes), {0: size, 1: float(epsilon), 2: 0}
    shape = x.shape[rank - count :]
    shifts = layer == "LayerNorm"
    if all(one is None or (one.array is not None and one.shape == shape) for one in (scale, bias)):
        shift = np.zeros(shape) if bias is None else constant(bias, "bias")
        weights = [(constant(scale, "scale"), 1), *([(shift, 1)] if shifts else [])]
        return emit(layer, [blob], x.shape, {**params, 2: 1}, weights, sizes)
    y = paired("mul", emit(layer, [blob], x.shape, params, (), sizes), scale)
    return y if bias is None else paired("add", y, bias)


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
    return normed("LayerNorm", x, axis, epsilon, scale, bias)


@lowers("RMSNormalization")
def rms_norm(x: Any, scale: Any, *, axis: int = -1, epsilon: float = 1e-5, stash_type: str = "float32") -> Any:
    """The axes from `axis` on divided by their root mean square."""
    return normed("RMSNorm", x, axis, epsilon, scale, None)
