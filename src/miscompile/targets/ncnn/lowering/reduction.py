"""Reductions along axes, and the operators that work along one axis."""

# ruff: noqa: ANN401 - symbolic tensors, and nested sequences of numbers

from typing import Any

from miscompile.targets.lowering.table import lowers
from miscompile.targets.ncnn.tensors import along, emit

REDUCTIONS = {
    "ReduceSum": 0, "ReduceSumSquare": 2, "ReduceMean": 3, "ReduceMax": 4, "ReduceMin": 5, "ReduceProd": 6,
    "ReduceL1": 7, "ReduceL2": 8, "ReduceLogSum": 9, "ReduceLogSumExp": 10,
}  # fmt: skip
"""Kinds of ncnn's layer Reduction."""


@lowers(
    "ReduceSum", "ReduceSumSquare", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd",
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", static=(1,),
)  # fmt: skip
def reduce(
    x: Any, dims: Any = None, *, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0, op: str
) -> Any:
    """x reduced along axes, by default along all."""
    rank = len(x.shape)
    chosen = sorted({axis % max(rank, 1) for axis in dims or axes or ()}) or list(range(rank))
    if rank == 0 or (noop_with_empty_axes and not (dims or axes)):
        raise NotImplementedError("a reduction of no axis has no lowering")
    blob, places, gone = along(x, *chosen)
    kept = [1 if i in chosen else size for i, size in enumerate(x.shape)]
    shape = kept if keepdims else [size for i, size in enumerate(x.shape) if i not in chosen]
    left = [size for i, size in enumerate(blob.sizes) if i not in places] or [1]
    params = {0: REDUCTIONS[op], 1: 0, 2: 1.0, 3: places, 4: int(bool(keepdims)), 5: 1}
    return emit("Reduction", [blob], shape, params, sizes=kept[gone:] if keepdims else left)


@lowers("Softmax")
def softmax(x: Any, *, axis: int = -1, opset: int) -> Any:
    """exp(x), divided by its sum along an axis."""
    if opset < 13:
        raise NotImplementedError("Softmax of several axes has no lowering")
    blob, (place,), _ = along(x, axis)
    return emit("Softmax", [blob], x.shape, {0: place, 1: 1}, sizes=blob.sizes)


@lowers("CumSum", static=(1,))
def cumulative_sum(x: Any, axis: Any, *, exclusive: int = 0, reverse: int = 0) -> Any:
    """The running sum along an axis."""
    if exclusive or reverse:
        raise NotImplementedError("CumSum has a lowering from the first element on, and including each, only")
    blob, (place,), _ = along(x, axis[0] if isinstance(axis, tuple) else axis)
    return emit("CumulativeSum", [blob], x.shape, {0: place}, sizes=blob.sizes)
