"""Kernels along axes: reductions, arg-reductions, scans, softmax, normalisations."""

from collections.abc import Callable

import numpy as np

from miscompile.core.tensor import Array
from miscompile.targets.toy.ir import ToyCall
from miscompile.targets.toy.kernels.elementwise import Args, Kernel

Reducer = Callable[[Array, tuple[int, ...]], Array]
"""Reduces over axes and keeps them with size one; the element type may widen."""


def reduced_axes(call: ToyCall, args: Args) -> tuple[int, ...]:
    """Return the axes that a Reduce call names, sorted.

    Axes are an attribute in old opsets and an operand in new ones; without any, all axes are meant, or none with
    noop_with_empty_axes.
    """
    rank = args[0].ndim
    given = args[1] if len(args) > 1 else None
    axes = call.get("axes") if given is None else tuple(int(axis) for axis in given.ravel())
    if not axes:
        return () if call.get("noop_with_empty_axes", 0) else tuple(range(rank))
    return tuple(sorted({axis % rank for axis in axes}))


def reduction(function: Reducer, *, before: Callable[[Array], Array] | None = None) -> Kernel:
    """Kernel of a reduction; `before` maps the elements first.

    Without axes each element is reduced alone: ReduceLogSum still takes logarithms
    (https://onnx.ai/onnx/operators/onnx__ReduceLogSum.html).
    """

    def run(call: ToyCall, args: Args) -> Array:
        x = args[0] if before is None else np.asarray(before(args[0]))
        axes = reduced_axes(call, args)
        result = function(x, axes).astype(args[0].dtype, copy=False)
        return result if call.get("keepdims", 1) == 1 else np.asarray(np.squeeze(result, axes))

    return run


def _sum(x: Array, axes: tuple[int, ...]) -> Array:
    return np.asarray(np.sum(x, axes, dtype=x.dtype, keepdims=True))


def _product(x: Array, axes: tuple[int, ...]) -> Array:
    return np.asarray(np.prod(x, axes, dtype=x.dtype, keepdims=True))


def _mean(x: Array, axes: tuple[int, ...]) -> Array:
    if x.dtype.kind == "f":
        return np.asarray(np.mean(x, axes, keepdims=True))
    total = np.sum(x, axes, dtype=np.int64 if x.dtype.kind == "i" else np.uint64, keepdims=True)
    count = int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
    negative = (total < 0) & (total % max(count, 1) != 0)
    return np.asarray(total // max(count, 1) + negative.astype(total.dtype))


def _extreme(function: "np.ufunc", *, largest: bool) -> Reducer:
    def run(x: Array, axes: tuple[int, ...]) -> Array:
        if x.dtype.kind == "f":
            start = -np.inf if largest else np.inf
        elif x.dtype.kind == "b":
            start = not largest
        else:
            start = np.iinfo(x.dtype).min if largest else np.iinfo(x.dtype).max
        return np.asarray(function.reduce(x, axes, keepdims=True, initial=x.dtype.type(start)))

    return run


def _log_sum_exp(x: Array, axes: tuple[int, ...]) -> Array:
    top = np.max(x, axes, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0).astype(x.dtype)
    return np.asarray(np.log(_sum(np.exp(x - top), axes)) + top)


def _arg(function: Callable[..., Array]) -> Kernel:
    def run(call: ToyCall, args: Args) -> Array:
        x, axis = args[0], call.get("axis", 0) % args[0].ndim
        if call.get("select_last_index", 0):
            found = x.shape[axis] - 1 - function(np.flip(x, axis), axis=axis)
        else:
            found = function(x, axis=axis)
        return np.asarray(np.expand_dims(found, axis) if call.get("keepdims", 1) == 1 else found)

    return run


def _cumulative_sum(call: ToyCall, args: Args) -> Array:
    x, axis = args[0], int(args[1].reshape(()))
    x = np.flip(x, axis) if call.get("reverse", 0) else x
    result = np.cumsum(x, axis, dtype=x.dtype)
    if call.get("exclusive", 0) and x.shape[axis]:
        first = np.zeros_like(np.take(x, [0], axis))
        result = np.concatenate((first, np.take(result, np.arange(x.shape[axis] - 1), axis)), axis)
    return np.asarray(np.flip(result, axis) if call.get("reverse", 0) else result)


def softmax(x: Array, axis: int) -> Array:
    """Exponentials divided by their sum along `axis`, shifted by the largest element."""
    if not x.size:
        return x
    raised = np.exp(x - np.max(x, axis, keepdims=True))
    return np.asarray(raised / np.sum(raised, axis, dtype=x.dtype, keepdims=True))


def log_softmax(x: Array, axis: int) -> Array:
    """Logarithm of the softmax, computed without the softmax, because small values of it underflow."""
    if not x.size:
        return x
    shifted = x - np.max(x, axis, keepdims=True)
    return np.asarray(shifted - np.log(np.sum(np.exp(shifted), axis, dtype=x.dtype, keepdims=True)))


def _normalize(x: Array, axes: tuple[int, ...], epsilon: float) -> tuple[Array, Array, Array]:
    mean = np.mean(x, axes, keepdims=True)
    centred = x - mean
    inverse = x.dtype.type(1) / np.sqrt(np.mean(centred * centred, axes, keepdims=True) + x.dtype.type(epsilon))
    return centred * inverse, mean, inverse


def _layer_normalization(call: ToyCall, args: Args) -> tuple[Array, ...]:
    """Normalise the trailing axes in single precision or better, as stash_type 1 asks, then scale and shift."""
    x, scale, bias = (*args, None)[:3]
    axis = call.get("axis", -1) % x.ndim
    wide = x.astype(np.float32) if x.dtype == np.float16 else x
    normal, mean, inverse = _normalize(wide, tuple(range(axis, x.ndim)), call.get("epsilon", 1e-5))
    result = normal.astype(x.dtype) * scale
    statistics = mean.astype(np.float32), inverse.astype(np.float32)
    return (result if bias is None else result + bias, *statistics)[: len(call.outputs)]


def _instance_normalization(call: ToyCall, args: Args) -> Array:
    x, scale, bias = args
    normal, _, _ = _normalize(x, tuple(range(2, x.ndim)), call.get("epsilon", 1e-5))
    shape = (-1,) + (1,) * (x.ndim - 2)
    return np.asarray(normal * scale.reshape(shape) + bias.reshape(shape))


def _batch_normalization(call: ToyCall, args: Args) -> Array:
    x, scale, bias, mean, variance = args
    shape = (-1,) + (1,) * (x.ndim - 2) if x.ndim > 1 else (-1,)
    factor = scale / np.sqrt(variance + variance.dtype.type(call.get("epsilon", 1e-5)))
    return np.asarray((x - mean.reshape(shape)) * factor.reshape(shape) + bias.reshape(shape)).astype(x.dtype)


def _lp_normalization(call: ToyCall, args: Args) -> Array:
    x, axis = args[0], call.get("axis", -1)
    order = call.get("p", 2)
    norm = np.sum(np.abs(x), axis, keepdims=True) if order == 1 else np.sqrt(np.sum(x * x, axis, keepdims=True))
    return np.asarray(np.where(norm == 0, x.dtype.type(0), x / norm)).astype(x.dtype)


KERNELS: dict[str, Kernel] = {
    "ReduceSum": reduction(_sum), "ReduceProd": reduction(_product), "ReduceMean": reduction(_mean),
    "ReduceMax": reduction(_extreme(np.maximum, largest=True)),
    "ReduceMin": reduction(_extreme(np.minimum, largest=False)),
    "ReduceL1": reduction(_sum, before=np.abs), "ReduceSumSquare": reduction(_sum, before=np.square),
    "ReduceL2": reduction(lambda x, axes: np.asarray(np.sqrt(_sum(x * x, axes)))),
    "ReduceLogSum": reduction(lambda x, axes: np.asarray(np.log(_sum(x, axes)))),
    "ReduceLogSumExp": reduction(_log_sum_exp),
    "ArgMax": _arg(np.argmax), "ArgMin": _arg(np.argmin),
    "CumSum": _cumulative_sum,
    "Softmax": lambda call, args: softmax(args[0], call.get("axis", -1)),
    "LogSoftmax": lambda call, args: log_softmax(args[0], call.get("axis", -1)),
    "LayerNormalization": _layer_normalization, "InstanceNormalization": _instance_normalization,
    "BatchNormalization": _batch_normalization, "LpNormalization": _lp_normalization,
}  # fmt: skip
