"""Reductions along axes, places of extremes, and the cumulative sum."""

# ruff: noqa: ANN401 - symbolic tensors, and nested sequences of numbers

from typing import Any

from miscompile.targets.litert.lowering.elementwise import SIGNED
from miscompile.targets.litert.tensors import emit, emit_all, only, reshaped, tensor
from miscompile.targets.lowering.table import lowers

REDUCTIONS = {
    "ReduceSum": "SUM",
    "ReduceMean": "MEAN",
    "ReduceMax": "REDUCE_MAX",
    "ReduceMin": "REDUCE_MIN",
    "ReduceProd": "REDUCE_PROD",
}


@lowers("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", static=(1,))
def reduce(
    x: Any, dims: Any = None, *, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0, op: str
) -> Any:
    """x reduced along axes, by default along all."""
    rank = len(x.shape)
    chosen = [axis % max(rank, 1) for axis in dims or axes or ()]
    if not chosen and (noop_with_empty_axes or rank == 0):
        return x
    chosen = chosen or list(range(rank))
    if 0 in x.shape:
        raise NotImplementedError("a reduction of no elements has no lowering")
    kept = [1 if i in chosen else size for i, size in enumerate(x.shape)]
    shape = kept if keepdims else [size for i, size in enumerate(x.shape) if i not in chosen]
    kinds = ("float32",) if op == "ReduceMean" else SIGNED
    operands = [only(x, *kinds), tensor(chosen, "int32")]
    return emit(REDUCTIONS[op], operands, shape, x.dtype, "ReducerOptions", keepDims=bool(keepdims))


@lowers("ArgMax", "ArgMin")
def place_of_extreme(x: Any, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0, op: str) -> Any:
    """The first place of the largest or smallest element along an axis."""
    if select_last_index:
        raise NotImplementedError("the last place of an extreme has no lowering")
    axis %= len(x.shape)
    shape = [size for i, size in enumerate(x.shape) if i != axis]
    code, options = ("ARG_MAX", "ArgMaxOptions") if op == "ArgMax" else ("ARG_MIN", "ArgMinOptions")
    y = emit(code, [only(x, "float32", "int32"), tensor(axis, "int32")], shape, "int64", options, outputType=4)
    return reshaped(y, [1 if i == axis else size for i, size in enumerate(x.shape)]) if keepdims else y


@lowers("TopK", static=(1,))
def top_k(x: Any, k: Any, *, axis: int = -1, largest: int = 1, sorted: int = 1, outputs: int) -> Any:
    """The largest elements along the last axis, and their places."""
    if k == ():
        raise NotImplementedError("TopK has a lowering for one number of elements only")
    count = k[0] if isinstance(k, tuple) else k
    if axis % len(x.shape) != len(x.shape) - 1 or not largest:
        raise NotImplementedError("TopK has a lowering for the largest elements along the last axis only")
    shape = (*x.shape[:-1], count)
    operands = [only(x, *SIGNED), tensor(count, "int32")]
    values, places = emit_all("TOPK_V2", operands, [(shape, x.dtype), (shape, "int32")], "TopKV2Options")
    wide = emit("CAST", [places], shape, "int64", "CastOptions")
    return (values, wide) if outputs > 1 else values


@lowers("CumSum", static=(1,))
def cumulative_sum(x: Any, axis: Any, *, exclusive: int = 0, reverse: int = 0) -> Any:
    """The running sum along an axis."""
    place = (axis[0] if isinstance(axis, tuple) else axis) % len(x.shape)
    operands = [only(x, *SIGNED), tensor(place, "int32")]
    fields = {"exclusive": bool(exclusive), "reverse": bool(reverse)}
    return emit("CUMSUM", operands, x.shape, x.dtype, "CumsumOptions", **fields)
