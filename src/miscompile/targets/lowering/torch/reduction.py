"""Reductions along axes, and the cumulative sum."""

# ruff: noqa: ANN401 - tensors, and nested sequences of numbers

from typing import Any

import torch

from miscompile.targets.lowering.table import lowers


def reduced(x: Any, dims: Any, axes: Any, noop: int) -> tuple[int, ...]:
    """Return the axes to reduce, given as an operand or as an attribute; all of them when there are none."""
    chosen = tuple(dims or axes or ())
    return chosen if chosen or noop else tuple(range(x.dim()))


@lowers("ReduceSum", static=(1,))
def reduce_sum(x: Any, dims: Any = None, *, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Any:
    """The sum."""
    dims = reduced(x, dims, axes, noop_with_empty_axes)
    return torch.sum(x, dims, bool(keepdims), dtype=x.dtype) if dims else x


@lowers("ReduceMean", static=(1,))
def reduce_mean(x: Any, dims: Any = None, *, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Any:
    """The mean."""
    dims = reduced(x, dims, axes, noop_with_empty_axes)
    return torch.mean(x, dims, bool(keepdims)) if dims else x


@lowers("ReduceMax", static=(1,))
def reduce_max(x: Any, dims: Any = None, *, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Any:
    """The largest element."""
    dims = reduced(x, dims, axes, noop_with_empty_axes)
    if 0 in [x.shape[dim] for dim in dims]:
        raise NotImplementedError("ReduceMax of no elements has no lowering")
    if len(dims) == x.dim() and not keepdims:
        return torch.amax(x)
    return torch.amax(x, dims, bool(keepdims)) if dims else x


@lowers("ReduceMin", static=(1,))
def reduce_min(x: Any, dims: Any = None, *, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Any:
    """The smallest element."""
    dims = reduced(x, dims, axes, noop_with_empty_axes)
    if 0 in [x.shape[dim] for dim in dims]:
        raise NotImplementedError("ReduceMin of no elements has no lowering")
    if len(dims) == x.dim() and not keepdims:
        return torch.amin(x)
    return torch.amin(x, dims, bool(keepdims)) if dims else x


@lowers("ReduceProd", static=(1,))
def reduce_prod(x: Any, dims: Any = None, *, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Any:
    """The product, one axis at a time, as torch requires."""
    dims = reduced(x, dims, axes, noop_with_empty_axes)
    for dim in sorted([dim % x.dim() for dim in dims], reverse=True):
        x = torch.prod(x, dim, bool(keepdims), dtype=x.dtype)
    return x


@lowers("ReduceL1", static=(1,))
def reduce_l1(x: Any, dims: Any = None, *, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Any:
    """The sum of magnitudes."""
    dims = reduced(x, dims, axes, noop_with_empty_axes)
    if x.dtype in (torch.uint8, torch.uint16, torch.uint32, torch.uint64):
        return torch.sum(x, dims, bool(keepdims), dtype=x.dtype) if dims else x
    return torch.sum(torch.abs(x), dims, bool(keepdims), dtype=x.dtype) if dims else torch.abs(x)


@lowers("ReduceL2", static=(1,))
def reduce_l2(x: Any, dims: Any = None, *, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Any:
    """The root of the sum of squares."""
    dims = reduced(x, dims, axes, noop_with_empty_axes)
    if not x.is_floating_point():
        raise NotImplementedError("ReduceL2 of integers has no lowering")
    return torch.linalg.vector_norm(x, 2, dims, bool(keepdims)) if dims else torch.abs(x)


@lowers("ReduceLogSum", static=(1,))
def reduce_log_sum(
    x: Any, dims: Any = None, *, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Any:
    """The logarithm of the sum."""
    dims = reduced(x, dims, axes, noop_with_empty_axes)
    return torch.log(torch.sum(x, dims, bool(keepdims)) if dims else x)


@lowers("ReduceLogSumExp", static=(1,))
def reduce_log_sum_exp(
    x: Any, dims: Any = None, *, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Any:
    """The logarithm of the sum of exponentials."""
    dims = reduced(x, dims, axes, noop_with_empty_axes)
    return torch.logsumexp(x, dims, bool(keepdims)) if dims else x


@lowers("ReduceSumSquare", static=(1,))
def reduce_sum_square(
    x: Any, dims: Any = None, *, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Any:
    """The sum of squares."""
    dims = reduced(x, dims, axes, noop_with_empty_axes)
    return torch.sum(x * x, dims, bool(keepdims), dtype=x.dtype) if dims else x * x


@lowers("CumSum", static=(1,))
def cum_sum(x: Any, axis: Any, *, exclusive: int = 0, reverse: int = 0) -> Any:
    """The cumulative sum along an axis, from either end, with or without the element itself."""
    axis = axis[0] if isinstance(axis, tuple) else axis
    x = torch.flip(x, (axis,)) if reverse else x
    if exclusive and x.shape[axis]:
        x = torch.cat((torch.zeros_like(x.narrow(axis, 0, 1)), x.narrow(axis, 0, x.shape[axis] - 1)), axis)
    x = torch.cumsum(x, axis, dtype=x.dtype)
    return torch.flip(x, (axis,)) if reverse else x


@lowers("CumProd", static=(1,))
def cum_prod(x: Any, axis: Any, *, exclusive: int = 0, reverse: int = 0) -> Any:
    """The cumulative product along an axis, from either end, with or without the element itself."""
    axis = axis[0] if isinstance(axis, tuple) else axis
    x = torch.flip(x, (axis,)) if reverse else x
    if exclusive and x.shape[axis]:
        x = torch.cat((torch.ones_like(x.narrow(axis, 0, 1)), x.narrow(axis, 0, x.shape[axis] - 1)), axis)
    x = torch.cumprod(x, axis, dtype=x.dtype)
    return torch.flip(x, (axis,)) if reverse else x
