"""Rewrites that fuse calls into larger ones."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from miscompile.core.tensor import Array
from miscompile.targets.toy.ir import Bugs, Code, ToyCall
from miscompile.targets.toy.passes.rewriting import int64, integers, kind_of, only_use, reduced_axes, swapped_pairs


def fuse_matmul_add(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """MatMul + Add becomes Gemm, for matrices and a bias that broadcasts into the product."""
    if call.op != "Add":
        return False
    for product, bias in swapped_pairs(call):
        matmul = code.made_by(product, "MatMul")
        shape, small = code.shape(product), code.shape(bias)
        if matmul is None or shape is None or small is None or not only_use(code, product):
            continue
        if any(code.rank(name) != 2 for name in matmul.inputs):
            continue
        # A Gemm adds before its activation, so an Add after an activation is not the same.
        if matmul.attributes and "bias_inside_activation" not in bugs:
            continue
        fits = len(small) <= 2 and np.broadcast_shapes(small, shape) == shape
        if fits or ("matmul_bias_rank" in bugs and len(small) > 2):
            code.swap(call, ToyCall("Gemm", (*matmul.inputs, bias), call.outputs, matmul.attributes))
            return True
    return False


def fuse_activation(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Relu after MatMul, Gemm or Conv becomes part of it."""
    source = code.made_by(call.inputs[0], "MatMul", "Gemm", "Conv") if call.op == "Relu" else None
    if source is None or source.get("activation"):
        return False
    fused = ToyCall(source.op, source.inputs, call.outputs, {**source.attributes, "activation": "Relu"})
    if only_use(code, source.out):
        code.swap(call, fused)
        return True
    if "fusion_drops_inner_output" in bugs and code.uses(source.out) == 1 + code.outputs.count(source.out):
        code.swap(call, fused)
        code.swap_out(source)
        return True
    return False


def per_channel(value: Array, rank: int, channels: int) -> Array | None:
    """Return `value` as one number for each channel when it broadcasts along axis 1 alone, else None."""
    if value.size == 1 and value.ndim <= rank:
        return np.full(channels, value.reshape(()), value.dtype)
    padded = (1,) * (rank - value.ndim) + value.shape
    wanted = (1, channels) + (1,) * (rank - 2)
    return value.reshape(channels) if padded == wanted else None


def _conv_constants(code: Code, call: ToyCall) -> tuple[Array, Array] | None:
    """Return the weights and the bias (zeros when absent) of a Conv with constant parameters."""
    weight = code.constant(call.inputs[1])
    if weight is None:
        return None
    bias = code.constant(call.input(2)) if call.input(2) else np.zeros(weight.shape[0], weight.dtype)
    return None if bias is None else (weight, bias)


def _plain_conv(code: Code, name: str) -> ToyCall | None:
    """Return the Conv that makes `name` if nothing else reads it and no activation stands in between."""
    conv = code.made_by(name, "Conv")
    return conv if conv is not None and only_use(code, name) and not conv.get("activation") else None


def fuse_conv_add(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Conv + constant becomes a bias, when the constant has one element for each channel. Rounds."""
    if call.op != "Add":
        return False
    for product, other in swapped_pairs(call):
        conv, value = _plain_conv(code, product), code.constant(other)
        known = _conv_constants(code, conv) if conv is not None else None
        shape = code.shape(product)
        if conv is None or value is None or known is None or shape is None:
            continue
        channels = known[0].shape[0]
        bias = per_channel(value, len(shape), channels)
        if bias is None and "conv_add_last_axis" in bugs and value.shape == (channels,):
            bias = value
        if bias is not None:
            total = code.add_constant((known[1] + bias).astype(value.dtype))
            code.swap(call, ToyCall("Conv", (*conv.inputs[:2], total), call.outputs, conv.attributes))
            return True
    return False


def fold_conv_scale(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Conv * constant becomes other weights, when the constant has one element for each channel. Rounds."""
    del bugs
    if call.op != "Mul":
        return False
    for product, other in swapped_pairs(call):
        conv, value = _plain_conv(code, product), code.constant(other)
        shape = code.shape(product)
        known = _conv_constants(code, conv) if conv is not None else None
        if conv is None or value is None or known is None or shape is None:
            continue
        scale = per_channel(value, len(shape), known[0].shape[0])
        if scale is not None and _rescale(code, call, conv, scale, known[1]):
            return True
    return False


def _rescale(code: Code, call: ToyCall, conv: ToyCall, scale: Array, bias: Array, shift: Array | None = None) -> bool:
    """Put a Conv with scaled weights and bias, plus `shift`, in the place of `call`; refuse if a number overflows."""
    weight = code.constants[conv.inputs[1]]
    with np.errstate(all="ignore"):
        weight = (weight * scale.reshape((-1,) + (1,) * (weight.ndim - 1))).astype(weight.dtype)
        bias = (bias * scale).astype(weight.dtype)
        bias = bias if shift is None else (bias + shift).astype(weight.dtype)
    if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
        return False
    inputs = (conv.inputs[0], code.add_constant(weight), code.add_constant(bias))
    code.swap(call, ToyCall("Conv", inputs, call.outputs, conv.attributes))
    return True


def fold_batch_norm(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """BatchNormalization after Conv becomes other weights and bias. Rounds."""
    conv = _plain_conv(code, call.inputs[0]) if call.op == "BatchNormalization" else None
    known = _conv_constants(code, conv) if conv is not None else None
    parameters = [code.constant(name) for name in call.inputs[1:5]]
    if conv is None or known is None or any(value is None for value in parameters):
        return False
    scale, shift, mean, variance = (np.asarray(value) for value in parameters)
    epsilon = 0.0 if "batch_norm_epsilon" in bugs else call.get("epsilon", 1e-5)
    with np.errstate(all="ignore"):
        factor = (scale / np.sqrt(variance + variance.dtype.type(epsilon))).astype(known[0].dtype)
        rest = (shift - mean * factor).astype(known[0].dtype)
    return _rescale(code, call, conv, factor, known[1], rest)


def fuse_pad_conv(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Pad with zeros before a Conv becomes part of the Conv's own padding."""
    pad = code.made_by(call.inputs[0], "Pad") if call.op == "Conv" else None
    rank = code.rank(call.inputs[0])
    pads = integers(code.constant(pad.inputs[1])) if pad is not None else None
    if pad is None or rank is None or pads is None or len(pads) != 2 * rank or pad.input(3):
        return False
    if pad.get("mode", "constant") != "constant" and "pad_conv_mode" not in bugs:
        return False
    value = code.constant(pad.input(2)) if pad.input(2) else np.zeros(1)
    if value is None or value.any() or call.get("auto_pad", "NOTSET") not in ("NOTSET", ""):
        return False
    spatial = (*pads[2:rank], *pads[rank + 2 :])
    if min(pads) < 0 or any((*pads[:2], *pads[rank : rank + 2])):
        return False
    own = call.get("pads", (0,) * len(spatial))
    merged = tuple(a + b for a, b in zip(spatial, own, strict=True))
    code.swap(
        call, ToyCall("Conv", (pad.inputs[0], *call.inputs[1:]), call.outputs, {**call.attributes, "pads": merged})
    )
    return True


def fuse_relu_clip(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Relu before Clip becomes a lower bound of at least zero."""
    relu = code.made_by(call.inputs[0], "Relu") if call.op == "Clip" else None
    dtype = code.dtype(call.inputs[0])
    if relu is None or dtype is None:
        return False
    low = call.input(1)
    if low and code.constant(low) is None:
        return False
    if low or "relu_clip_missing_min" not in bugs:
        given = code.constants[low] if low else np.zeros((), dtype)
        low = code.add_constant(np.where(given > 0, given, dtype.type(0)).astype(dtype))
    code.swap(call, ToyCall("Clip", (relu.inputs[0], low, call.input(2)), call.outputs))
    return True


_ASSOCIATIVE = ("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin")


def _without_axes(call: ToyCall) -> Mapping[str, Any]:
    return {name: value for name, value in call.attributes.items() if name != "axes"}


def fuse_reductions(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Two reductions of one kind become one over all axes. Sums and products of floats round in another order."""
    inner = code.made_by(call.inputs[0], call.op) if call.op in _ASSOCIATIVE else None
    rank = code.rank(inner.inputs[0]) if inner is not None else None
    if inner is None or rank is None or not only_use(code, inner.out):
        return False
    keep = inner.get("keepdims", 1) == 1
    if keep != (call.get("keepdims", 1) == 1):
        return False
    first = reduced_axes(code, inner, rank)
    second = reduced_axes(code, call, rank if keep or first is None else rank - len(first))
    if first is None or second is None:
        return False
    if not keep and "reduce_fusion_keepdims" not in bugs:
        left = [axis for axis in range(rank) if axis not in first]
        second = tuple(left[axis] for axis in second)
    axes = code.add_constant(int64(tuple(sorted({*first, *second}))))
    code.swap(call, ToyCall(call.op, (inner.inputs[0], axes), call.outputs, _without_axes(call)))
    return True


def fuse_softmax(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Exp(LogSoftmax(x)) becomes Softmax(x). Rounds less."""
    inner = code.made_by(call.inputs[0], "LogSoftmax") if call.op == "Exp" else None
    if inner is None:
        return False
    axis = -1 if "softmax_axis" in bugs else inner.get("axis", -1)
    code.swap(call, ToyCall("Softmax", inner.inputs, call.outputs, {"axis": axis}))
    return True


def fuse_arg_neg(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """ArgMin(-x) becomes ArgMax(x) and the reverse, for floats; the least signed integer is its own negative."""
    inner = code.made_by(call.inputs[0], "Neg") if call.op in ("ArgMin", "ArgMax") else None
    if inner is None or (kind_of(code, inner.out) != "f" and "arg_min_of_neg_overflow" not in bugs):
        return False
    other = "ArgMax" if call.op == "ArgMin" else "ArgMin"
    code.swap(call, ToyCall(other, inner.inputs, call.outputs, call.attributes))
    return True


def hoist_scale(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """(x * c) @ y becomes (x @ y) * c for a constant with one element. Rounds; float16 could overflow."""
    if call.op != "MatMul" or call.attributes or code.dtype(call.out) in (None, np.dtype(np.float16)):
        return False
    product, shape = code.made_by(call.inputs[0], "Mul"), code.shape(call.out)
    if product is None or shape is None or not only_use(code, product.out):
        return False
    if any((code.rank(name) or 0) < 2 for name in call.inputs):
        return False
    for value, other in swapped_pairs(product):
        scale = code.constant(other)
        if scale is None or scale.ndim > 2 or code.shape(value) != code.shape(product.out):
            continue
        if scale.size == 1 or ("scale_hoisting_vector" in bugs and scale.shape[-1] == shape[-1]):
            inner = code.fresh(code.dtype(call.out), shape)
            matmul = ToyCall("MatMul", (value, call.inputs[1]), (inner,))
            code.swap(call, matmul, ToyCall("Mul", (inner, other), call.outputs))
            return True
    return False
