"""Operators that move elements and compute nothing."""

# ruff: noqa: ANN401 - symbolic tensors, and nested sequences of numbers

import math
from typing import Any

import numpy as np

from miscompile.targets.litert.lowering.elementwise import ANY
from miscompile.targets.litert.tensors import emit, emit_all, only, padded, permuted, reshaped, tensor
from miscompile.targets.lowering.table import lowers


@lowers("Reshape", static=(1,))
def reshape(x: Any, shape: tuple[int, ...], *, allowzero: int = 0) -> Any:
    """x in another shape; a 0 copies the size of x, a -1 is computed."""
    sizes = [x.shape[i] if size == 0 and not allowzero else size for i, size in enumerate(shape)]
    known = math.prod(size for size in sizes if size >= 0)
    return reshaped(x, [size if size >= 0 else math.prod(x.shape) // max(known, 1) for size in sizes])


@lowers("Flatten")
def flatten(x: Any, *, axis: int = 1) -> Any:
    """x as a matrix."""
    axis = axis + len(x.shape) if axis < 0 else axis
    return reshaped(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@lowers("Squeeze", static=(1,))
def squeeze(x: Any, dims: Any = None) -> Any:
    """x without axes of size one."""
    rank = len(x.shape)
    gone = [i for i in range(rank) if x.shape[i] == 1] if dims is None else [dim % rank for dim in dims]
    shape = [size for i, size in enumerate(x.shape) if i not in gone]
    return emit("SQUEEZE", [x], shape, x.dtype, "SqueezeOptions", squeezeDims=gone) if gone else x


@lowers("Unsqueeze", static=(1,))
def unsqueeze(x: Any, dims: Any) -> Any:
    """x with new axes of size one."""
    rank = len(x.shape) + len(dims)
    for dim in sorted(dim % rank for dim in dims):
        shape = (*x.shape[:dim], 1, *x.shape[dim:])
        x = emit("EXPAND_DIMS", [x, tensor(dim, "int32")], shape, x.dtype, "ExpandDimsOptions")
    return x


@lowers("Transpose")
def transpose(x: Any, *, perm: Any = None) -> Any:
    """x with its axes in another order, by default reversed."""
    return permuted(x, tuple(range(len(x.shape)))[::-1] if perm is None else perm)


@lowers("Expand", static=(1,))
def expand(x: Any, shape: Any) -> Any:
    """x broadcast to a shape."""
    whole = np.broadcast_shapes(x.shape, tuple(shape))
    return emit("BROADCAST_TO", [x, tensor(list(whole), "int32")], whole, x.dtype, "BroadcastToOptions")


@lowers("Tile", static=(1,))
def tile(x: Any, repeats: Any) -> Any:
    """x repeated along its axes."""
    shape = [size * count for size, count in zip(x.shape, repeats, strict=True)]
    return emit("TILE", [x, tensor(list(repeats), "int32")], shape, x.dtype, "TileOptions")


@lowers("Concat")
def concat(*xs: Any, axis: int) -> Any:
    """All operands, one after the other along an axis."""
    axis %= len(xs[0].shape)
    shape = list(xs[0].shape)
    shape[axis] = sum(x.shape[axis] for x in xs)
    return emit("CONCATENATION", [only(x, *ANY) for x in xs], shape, xs[0].dtype, "ConcatenationOptions", axis=axis)


@lowers("Split", static=(1,))
def split(x: Any, sizes: Any = None, *, axis: int = 0, num_outputs: int = 0, outputs: int) -> Any:
    """Pieces of the given sizes along an axis, or of equal size except for the last one."""
    axis %= len(x.shape)
    if sizes is None:
        size = -(-x.shape[axis] // outputs)
        sizes = (*([size] * (outputs - 1)), x.shape[axis] - size * (outputs - 1))
    shapes = [((*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype) for size in sizes]
    operands = [x, tensor(list(sizes), "int32"), tensor(axis, "int32")]
    pieces = emit_all("SPLIT_V", operands, shapes, "SplitVOptions", numSplits=len(sizes))
    return tuple(pieces) if outputs > 1 else pieces[0]


@lowers("Slice", static=(1, 2, 3, 4))
def slices(x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    """A slice of x, by a slice with masks where an end lies outside."""
    rank = len(x.shape)
    if rank > 5:
        raise NotImplementedError("Slice has a lowering for five axes at most")
    begin, end, stride, shape = [0] * rank, list(x.shape), [1] * rank, list(x.shape)
    for i, (start, stop) in enumerate(zip(starts, ends, strict=True)):
        axis, step = axes[i] % rank if axes else i, steps[i] if steps else 1
        span = range(*slice(start, stop, step).indices(x.shape[axis]))
        span = span if len(span) else range(0)  # a start before the first element would count from the back
        begin[axis], end[axis], stride[axis], shape[axis] = span.start, span.stop, span.step, len(span)
    most = 2**31 - 1
    stride = [max(min(step, most), -most) for step in stride]
    mask = sum(1 << axis for axis in range(rank) if end[axis] < 0)
    operands = [only(x, *ANY), tensor(begin, "int32"), tensor(end, "int32"), tensor(stride, "int32")]
    return emit("STRIDED_SLICE", operands, shape, x.dtype, "StridedSliceOptions", endMask=mask)


@lowers("Pad", static=(1, 2, 3))
def pad(x: Any, pads: Any, value: Any = None, axes: Any = None, *, mode: str = "constant") -> Any:
    """x padded with a value, or with its reflection."""
    rank, count = len(x.shape), len(pads) // 2
    sides = [(0, 0)] * rank
    for i, axis in enumerate(range(rank) if axes is None else axes):
        sides[axis % rank] = (pads[i], pads[i + count])
    number = value[0] if isinstance(value, tuple) else value or 0
    if mode == "constant":
        return padded(only(x, "float32", "int32", "int64"), sides, number)
    if mode != "reflect" or any(max(side) >= size for side, size in zip(sides, x.shape, strict=True)):
        raise NotImplementedError("Pad has a lowering for constants and simple reflections only")
    if any(min(side) < 0 for side in sides) or rank > 5:
        raise NotImplementedError("Pad by reflection has no lowering that crops, or for six axes")
    shape = [size + before + after for size, (before, after) in zip(x.shape, sides, strict=True)]
    operands = [only(x, "float32", "int32", "int64"), tensor([list(side) for side in sides], "int32")]
    return emit("MIRROR_PAD", operands, shape, x.dtype, "MirrorPadOptions", mode=0)


@lowers("Gather")
def gather(x: Any, index: Any, *, axis: int = 0) -> Any:
    """Slices of x at constant places along an axis."""
    axis %= len(x.shape)
    if index.array is None:
        raise NotImplementedError("Gather has a lowering for constant places only")
    places = tensor(index.array % max(x.shape[axis], 1), "int32")
    shape = (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
    return emit("GATHER", [only(x, *ANY), places], shape, x.dtype, "GatherOptions", axis=axis)


@lowers("DepthToSpace")
def depth_to_space(x: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    """Channels rearranged into blocks of pixels."""
    if mode != "DCR":
        raise NotImplementedError("DepthToSpace has a lowering for the order DCR only")
    n, c, h, w = x.shape
    shape = (n, h * blocksize, w * blocksize, c // blocksize**2)
    inner = permuted(only(x, "float32", "int32", "int64"), (0, 2, 3, 1))
    y = emit("DEPTH_TO_SPACE", [inner], shape, x.dtype, "DepthToSpaceOptions", blockSize=blocksize)
    return permuted(y, (0, 3, 1, 2))


@lowers("SpaceToDepth")
def space_to_depth(x: Any, *, blocksize: int) -> Any:
    """Blocks of pixels rearranged into channels."""
    n, c, h, w = x.shape
    shape = (n, h // blocksize, w // blocksize, c * blocksize**2)
    inner = permuted(only(x, "float32", "int32", "int64"), (0, 2, 3, 1))
    y = emit("SPACE_TO_DEPTH", [inner], shape, x.dtype, "SpaceToDepthOptions", blockSize=blocksize)
    return permuted(y, (0, 3, 1, 2))
