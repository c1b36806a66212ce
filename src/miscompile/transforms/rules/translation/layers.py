"""Readers and writers of reductions, matrix products, convolutions, pooling and normalisation."""

import math
from collections.abc import Mapping

from miscompile.base.errors import RejectedDraft
from miscompile.transforms.rules.kinds import Parameters
from miscompile.transforms.rules.translation.call import (
    NodeReader,
    NodeWriter,
    ReadTerm,
    TypedNode,
    WrittenNode,
    plural,
    positive,
)

_AXES_ARE_OPERANDS = {"ReduceSum": 13, "ReduceMax": 18, "ReduceMin": 18, "ReduceMean": 18}


def _reduce(call: TypedNode) -> ReadTerm:
    shape = call.shape(0)
    if shape is None or not call.only("axes", "keepdims", "noop_with_empty_axes"):
        return None
    axes = call.axes(1, "axes", len(shape))
    if not axes:
        named = call.present(1) and call.known_integers(1) is None
        if named or call.given("noop_with_empty_axes", 0):
            return None
        axes = tuple(range(len(shape)))
    return (axes, call.given("keepdims", 1)), call.node.inputs[:1]


def _place(call: TypedNode) -> ReadTerm:
    shape = call.shape(0)
    if not shape or not call.only("axis", "keepdims", "select_last_index"):
        return None
    axis = positive(call.given("axis", 0), len(shape))
    return (axis, call.given("keepdims", 1), call.given("select_last_index", 0)), call.node.inputs


def _gemm(call: TypedNode) -> ReadTerm:
    children = call.children(2, 3)
    alpha, beta = call.given("alpha", 1.0), call.given("beta", 1.0)
    if children is None or not call.only("alpha", "beta", "transA", "transB"):
        return None
    if any(math.isnan(number) or (number == 0 and math.copysign(1, number) < 0) for number in (alpha, beta)):
        return None
    return (alpha, beta, int(bool(call.given("transA", 0))), int(bool(call.given("transB", 0)))), children


_WINDOW = ("auto_pad", "dilations", "kernel_shape", "pads", "strides")


def _window(call: TypedNode, kernel: tuple[int, ...]) -> tuple[tuple[int, ...], ...] | None:
    """Return kernel, pads, strides and dilations, with automatic padding made explicit."""
    shape, rank = call.shape(0), len(kernel)
    strides = tuple(call.given("strides", (1,) * rank))
    dilations = tuple(call.given("dilations", (1,) * rank))
    if shape is None or len(shape) != rank + 2 or not len(strides) == len(dilations) == rank:
        return None
    automatic = call.given("auto_pad", "NOTSET")
    if automatic == "NOTSET":
        return kernel, tuple(call.given("pads", (0,) * (2 * rank))), strides, dilations
    if automatic == "VALID":
        return kernel, (0,) * (2 * rank), strides, dilations
    spans = [(taps - 1) * dilation + 1 for taps, dilation in zip(kernel, dilations, strict=True)]
    whole = [
        max((-(-size // stride) - 1) * stride + span - size, 0)
        for size, stride, span in zip(shape[2:], strides, spans, strict=True)
    ]
    less, more = tuple(pad // 2 for pad in whole), tuple(pad - pad // 2 for pad in whole)
    return kernel, (less + more if automatic == "SAME_UPPER" else more + less), strides, dilations


def _conv(call: TypedNode) -> ReadTerm:
    children, weight = call.children(2, 3), call.shape(1)
    if children is None or weight is None or not call.only(*_WINDOW, "group"):
        return None
    if tuple(call.given("kernel_shape", weight[2:])) != weight[2:]:
        return None
    window = _window(call, weight[2:])
    return None if window is None else ((call.given("group", 1), *window), children)


def _pool(call: TypedNode) -> ReadTerm:
    names = (*_WINDOW, "ceil_mode", "storage_order", "count_include_pad")
    if not call.only(*names) or call.given("ceil_mode", 0) or "kernel_shape" not in call.node.attributes:
        return None
    window = _window(call, tuple(call.given("kernel_shape", ())))
    if window is None:
        return None
    counted = (int(bool(call.given("count_include_pad", 0))),) if call.node.op == "AveragePool" else ()
    return (*window, *counted), call.node.inputs


def _normalisation(call: TypedNode) -> ReadTerm:
    if not call.only("epsilon", "momentum", "training_mode") or call.given("training_mode", 0):
        return None
    return (call.given("epsilon", 1e-5),), call.node.inputs


READERS: Mapping[str, NodeReader] = {
    **dict.fromkeys(_AXES_ARE_OPERANDS, _reduce),
    "ArgMax": _place,
    "ArgMin": _place,
    "Gemm": _gemm,
    "Conv": _conv,
    "MaxPool": _pool,
    "AveragePool": _pool,
    "BatchNormalization": _normalisation,
}


def _write_reduce(op: str) -> NodeWriter:
    def write(parameters: Parameters, opset: int) -> WrittenNode:
        axes, keepdims = parameters
        if opset >= _AXES_ARE_OPERANDS[op]:
            return {"keepdims": keepdims}, (("axes", axes),)
        return {"axes": plural(axes), "keepdims": keepdims}, ()

    return write


def _write_place(parameters: Parameters, opset: int) -> WrittenNode:
    axis, keepdims, last = parameters
    return {"axis": axis, "keepdims": keepdims, "select_last_index": last or None}, ()


def _write_gemm(parameters: Parameters, opset: int) -> WrittenNode:
    alpha, beta, left, right = parameters
    return {"alpha": float(alpha), "beta": float(beta), "transA": left, "transB": right}, ()


def _write_conv(parameters: Parameters, opset: int) -> WrittenNode:
    group, kernel, pads, strides, dilations = parameters
    return {
        "dilations": plural(dilations), "group": group, "kernel_shape": plural(kernel), "pads": plural(pads),
        "strides": plural(strides),
    }, ()  # fmt: skip


def _write_max_pool(parameters: Parameters, opset: int) -> WrittenNode:
    kernel, pads, strides, dilations = parameters
    return {
        "dilations": plural(dilations), "kernel_shape": plural(kernel), "pads": plural(pads),
        "strides": plural(strides),
    }, ()  # fmt: skip


def _write_average_pool(parameters: Parameters, opset: int) -> WrittenNode:
    kernel, pads, strides, dilations, counted = parameters
    spread = any(dilation != 1 for dilation in dilations)
    if spread and opset < 19:
        raise RejectedDraft("AveragePool has no dilations before opset 19")
    return {
        "count_include_pad": counted, "dilations": plural(dilations) if spread else None,
        "kernel_shape": plural(kernel), "pads": plural(pads), "strides": plural(strides),
    }, ()  # fmt: skip


WRITERS: Mapping[str, NodeWriter] = {
    **{op: _write_reduce(op) for op in _AXES_ARE_OPERANDS},
    "ArgMax": _write_place,
    "ArgMin": _write_place,
    "Gemm": _write_gemm,
    "Conv": _write_conv,
    "MaxPool": _write_max_pool,
    "AveragePool": _write_average_pool,
    "BatchNormalization": lambda parameters, opset: ({"epsilon": float(parameters[0])}, ()),
}
