"""Operators that read or write elements by index."""

# ruff: noqa: ANN401 - tensors, and nested sequences of numbers

from typing import Any

import torch

from miscompile.targets.lowering.table import lowers
from miscompile.targets.lowering.torch.names import wrap

REDUCTIONS = {"mul": "prod", "max": "amax", "min": "amin"}


@lowers("Gather")
def gather(x: Any, index: Any, *, axis: int = 0) -> Any:
    """The slices of x at the given indices, which may be negative."""
    if index.dim() < 2:  # tracing would take an index of rank 0 for an unknown Python number
        found = torch.index_select(x, axis, wrap(index, x.shape[axis]).reshape(-1))
        return found if index.dim() else torch.squeeze(found, axis)
    return x[(slice(None),) * (axis % x.dim()) + (index.to(torch.int64),)]


@lowers("GatherElements")
def gather_elements(x: Any, index: Any, *, axis: int = 0) -> Any:
    """The elements of x at the given indices along an axis."""
    return torch.gather(x, axis, wrap(index, x.shape[axis]))


@lowers("GatherND")
def gather_nd(x: Any, index: Any, *, batch_dims: int = 0) -> Any:
    """The slices of x whose leading indices are in the last axis of `index`."""
    if index.dim() == 1:  # see `gather`
        return torch.squeeze(gather_nd(x, index.unsqueeze(0)), 0)
    places = torch.unbind(index.to(torch.int64), -1)
    for axis in reversed(range(batch_dims)):
        shape = [1] * places[0].dim()
        shape[axis] = x.shape[axis]
        places = (torch.arange(x.shape[axis]).reshape(shape), *places)
    return x[tuple(places)]


@lowers("ScatterElements")
def scatter_elements(x: Any, index: Any, updates: Any, *, axis: int = 0, reduction: str = "none") -> Any:
    """x with the elements at the given indices along an axis replaced by the updates, or reduced with them."""
    index = wrap(index, x.shape[axis])
    if reduction == "none":
        return torch.scatter(x, axis, index, updates)
    if reduction == "add":
        return torch.scatter_add(x, axis, index, updates)
    return torch.scatter_reduce(x, axis, index, updates, REDUCTIONS[reduction])


@lowers("ScatterND")
def scatter_nd(x: Any, index: Any, updates: Any, *, reduction: str = "none") -> Any:
    """x with the slices at `index` (leading indices in its last axis) replaced by the updates, or reduced with them."""
    places = torch.unbind(index.to(torch.int64), -1)
    if reduction in ("none", "add"):
        return torch.index_put(x, places, updates, accumulate=reduction == "add")
    depth, row = len(places), torch.zeros((), dtype=torch.int64)
    for size, place in zip(x.shape, places, strict=False):
        row = row * size + wrap(place, size)
    rows = x.reshape(x.shape[:depth].numel(), x.shape[depth:].numel())
    row = row.reshape(-1, 1).expand(-1, rows.shape[1])
    return torch.scatter_reduce(rows, 0, row, updates.reshape(row.shape), REDUCTIONS[reduction]).reshape(x.shape)


@lowers("TensorScatter")
def tensor_scatter(past: Any, update: Any, start: Any = None, *, axis: int = -2, mode: str = "linear") -> Any:
    """A cache with updates written along an axis, from an index per sample on; they wrap around if `circular`."""
    cache, steps = torch.movedim(past, axis, 1), torch.movedim(update, axis, 1)
    place = torch.arange(steps.shape[1]).unsqueeze(0) + (0 if start is None else start.unsqueeze(1))
    place = place % cache.shape[1] if mode == "circular" else place
    cache = torch.index_put(cache, (torch.arange(cache.shape[0]).unsqueeze(1), place), steps)
    return torch.movedim(cache, 1, axis)


@lowers("OneHot", static=(1,))
def one_hot(index: Any, depth: Any, values: Any, *, axis: int = -1) -> Any:
    """values[1] at the given indices along a new axis, else values[0]."""
    depth = int(depth[0] if isinstance(depth, tuple) else depth)
    shape = [1] * (index.dim() + 1)
    shape[axis] = depth
    places = torch.arange(depth).reshape(shape)
    return torch.where(wrap(index, depth).unsqueeze(axis) == places, values[1], values[0])


@lowers("TopK", static=(1,))
def top_k(x: Any, k: Any, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> Any:
    """The k largest or smallest elements and their indices; of equal elements the first comes first."""
    values, places = torch.sort(x, dim=axis, descending=bool(largest), stable=True)
    return values.narrow(axis, 0, k[0]), places.narrow(axis, 0, k[0])


@lowers("ArgMax")
def arg_max(x: Any, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Any:
    """The index of the largest element along an axis, the first or the last one."""
    if select_last_index:
        return x.shape[axis] - 1 - torch.argmax(torch.flip(x, (axis,)), axis, bool(keepdims))
    return torch.argmax(x, axis, bool(keepdims))


@lowers("ArgMin")
def arg_min(x: Any, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Any:
    """The index of the smallest element along an axis, the first or the last one."""
    if select_last_index:
        return x.shape[axis] - 1 - torch.argmin(torch.flip(x, (axis,)), axis, bool(keepdims))
    return torch.argmin(x, axis, bool(keepdims))
