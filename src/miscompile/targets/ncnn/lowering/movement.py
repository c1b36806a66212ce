"""Operators that move elements and compute nothing."""

# ruff: noqa: ANN401 - symbolic tensors, and nested sequences of numbers

import math
from typing import Any

import numpy as np

from miscompile.targets.lowering.table import lowers
from miscompile.targets.ncnn.tensors import NcnnValue, along, as_blob, emit, reshaped, results, slim, whole

ORDERS = {
    2: ("WH", "HW"),
    3: ("WHC", "HWC", "WCH", "CWH", "HCW", "CHW"),
    4: (
        "WHDC", "HWDC", "WDHC", "DWHC", "HDWC", "DHWC", "WHCD", "HWCD", "WCHD", "CWHD", "HCWD", "CHWD",
        "WDCH", "DWCH", "WCDH", "CWDH", "DCWH", "CDWH", "HDCW", "DHCW", "HCDW", "CHDW", "DCHW", "CDHW",
    ),
}  # fmt: skip
"""The orders of axes, the innermost first, by their numbers in ncnn's layer Permute."""


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
    return reshaped(x, [size for i, size in enumerate(x.shape) if i not in gone])


@lowers("Unsqueeze", static=(1,))
def unsqueeze(x: Any, dims: Any) -> Any:
    """x with new axes of size one."""
    shape = list(x.shape)
    for dim in sorted(dim % (len(x.shape) + len(dims)) for dim in dims):
        shape.insert(dim, 1)
    return reshaped(x, shape)


@lowers("Transpose")
def transpose(x: Any, *, perm: Any = None) -> Any:
    """x with its axes in another order, by default reversed."""
    rank = len(x.shape)
    if rank < 2:
        return x
    perm = tuple(range(rank))[::-1] if perm is None else perm
    shape, gone = [x.shape[i] for i in perm], rank - len(slim(x.shape))
    kept = gone == 0 or perm[0] == 0  # the axis that the blob lacks stays the first
    blob = as_blob(x, slim(x.shape) if kept else whole(x.shape))
    if len(blob.sizes) == 1:
        return NcnnValue(tuple(shape), blob)
    inner = [i - gone for i in perm[gone:]] if kept else perm
    letters = {2: "HW", 3: "CHW", 4: "CDHW"}[len(inner)]
    order = "".join(letters[i] for i in reversed(inner))
    params = {0: ORDERS[len(inner)].index(order)}
    return emit("Permute", [blob], shape, params, sizes=[blob.sizes[i] for i in inner])


def repeated(x: Any, repeats: Any) -> Any:
    """x repeated along its axes."""
    if 0 in repeats:
        raise NotImplementedError("a result without elements has no lowering")
    blob, places, gone = along(x, *[axis for axis, count in enumerate(repeats) if count > 1])
    counts = [int(count) for count in repeats[gone:]]
    if not places:
        return x
    sizes = [size * count for size, count in zip(blob.sizes, counts, strict=True)]
    shape = [size * count for size, count in zip(x.shape, repeats, strict=True)]
    return emit("Tile", [blob], shape, {2: counts}, sizes=sizes)


@lowers("Expand", static=(1,))
def expand(x: Any, shape: Any) -> Any:
    """x broadcast to a shape."""
    every = np.broadcast_shapes(x.shape, tuple(shape))
    x = reshaped(x, (*[1] * (len(every) - len(x.shape)), *x.shape))
    return repeated(x, [size if own == 1 else 1 for own, size in zip(x.shape, every, strict=True)])


@lowers("Tile", static=(1,))
def tile(x: Any, repeats: Any) -> Any:
    """x repeated along its axes."""
    return repeated(x, repeats)


@lowers("Concat")
def concat(*xs: Any, axis: int) -> Any:
    """All operands, one after the other along an axis."""
    axis %= len(xs[0].shape)
    shape = list(xs[0].shape)
    shape[axis] = sum(x.shape[axis] for x in xs)
    found = [along(x, axis) for x in xs]
    blobs, (_, (place,), gone) = [blob for blob, _, _ in found], found[0]
    return emit("Concat", blobs, shape, {0: place}, sizes=shape[gone:])


@lowers("Split", static=(1,))
def split(x: Any, sizes: Any = None, *, axis: int = 0, num_outputs: int = 0, outputs: int) -> Any:
    """Pieces of the given sizes along an axis, or of equal size except for the last one."""
    axis %= len(x.shape)
    if sizes is None:
        size = -(-x.shape[axis] // outputs)
        sizes = (*([size] * (outputs - 1)), x.shape[axis] - size * (outputs - 1))
    if 0 in sizes:
        raise NotImplementedError("a piece without elements has no lowering")
    blob, (place,), gone = along(x, axis)
    shapes = [(*x.shape[:axis], size, *x.shape[axis + 1 :]) for size in sizes]
    blobs = results("Slice", [blob], [shape[gone:] for shape in shapes], {0: list(sizes), 1: place})
    pieces = [NcnnValue(shape, one) for shape, one in zip(shapes, blobs, strict=True)]
    return tuple(pieces) if outputs > 1 else pieces[0]


@lowers("Slice", static=(1, 2, 3, 4))
def slices(x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    """A slice of x by single steps; backward steps are forward ones in reversed order."""
    chosen, flipped = [], []
    for i, (start, stop) in enumerate(zip(starts, ends, strict=True)):
        axis, step = (axes[i] if axes else i) % len(x.shape), steps[i] if steps else 1
        span = range(*slice(start, stop, step).indices(x.shape[axis]))
        if abs(step) != 1 or len(span) == 0:
            raise NotImplementedError("Slice has a lowering for single steps and for some elements only")
        low, high = min(span), max(span) + 1
        chosen += [(axis, low, high)] if (low, high) != (0, x.shape[axis]) else []
        flipped += [axis] if step < 0 else []
    return reversed_along(cropped(x, chosen), flipped)


def cropped(x: Any, spans: Any) -> Any:
    """x from the first to before the last place of each (axis, first, last)."""
    if not spans:
        return x
    blob, places, gone = along(x, *[axis for axis, _, _ in spans])
    shape = list(x.shape)
    for axis, low, high in spans:
        shape[axis] = high - low
    lows, highs = [low for _, low, _ in spans], [high for _, _, high in spans]
    return emit("Crop", [blob], shape, {9: lows, 10: highs, 11: places}, sizes=shape[gone:])


def reversed_along(x: Any, axes: Any) -> Any:
    """x in reversed order along axes."""
    if not axes:
        return x
    blob, places, _ = along(x, *axes)
    return emit("Flip", [blob], x.shape, {0: places}, sizes=blob.sizes)


@lowers("Gather")
def gather(x: Any, index: Any, *, axis: int = 0) -> Any:
    """The slice of x at one constant place of an axis."""
    axis %= len(x.shape)
    if index.array is None or index.array.size != 1:
        raise NotImplementedError("Gather has a lowering for one constant place only")
    place = int(index.array.reshape(())) % x.shape[axis]
    taken = cropped(x, [(axis, place, place + 1)] if x.shape[axis] > 1 else [])
    return reshaped(taken, (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]))


PADDINGS = {"constant": 0, "edge": 1, "reflect": 2}


@lowers("Pad", static=(1, 2, 3))
def pad(x: Any, pads: Any, value: Any = None, axes: Any = None, *, mode: str = "constant") -> Any:
    """x padded with a value, its margin or its reflection."""
    rank, count = len(x.shape), len(pads) // 2
    sides = [(0, 0)] * rank
    for i, axis in enumerate(range(rank) if axes is None else axes):
        sides[axis % rank] = (pads[i], pads[i + count])
    simple = all(max(side) < size for side, size in zip(sides, x.shape, strict=True)) or mode != "reflect"
    if mode not in PADDINGS or min(min(side) for side in sides) < 0 or not simple:
        raise NotImplementedError("Pad has a lowering for constants, margins and simple reflections only")
    if not any(map(any, sides)):
        return x
    blob, _, gone = along(x, *[axis for axis, side in enumerate(sides) if any(side)])
    inner = sides[gone:]
    if len(inner) == 4 and any(inner.pop(0)):
        raise NotImplementedError("Pad of the first of four axes has no lowering")
    number = value[0] if isinstance(value, tuple) else value or 0
    keys = ((2, 3), (0, 1), (7, 8))  # of the innermost axis, and outwards
    params: dict[int, Any] = {key: size for pair, side in zip(keys, reversed(inner), strict=False)
              for key, size in zip(pair, side, strict=True)}  # fmt: skip
    shape = [size + before + after for size, (before, after) in zip(x.shape, sides, strict=True)]
    params |= {4: PADDINGS[mode], 5: float(number)}
    return emit("Padding", [blob], shape, params, sizes=shape[gone:])


@lowers("DepthToSpace")
def depth_to_space(x: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    """Channels rearranged into blocks of pixels."""
    n, c, h, w = x.shape
    if n != 1:
        raise NotImplementedError("DepthToSpace of a batch has no lowering")
    shape = (1, c // blocksize**2, h * blocksize, w * blocksize)
    params = {0: blocksize, 1: int(mode == "DCR")}
    return emit("PixelShuffle", [as_blob(x, x.shape[1:])], shape, params)


@lowers("SpaceToDepth")
def space_to_depth(x: Any, *, blocksize: int) -> Any:
    """Blocks of pixels rearranged into channels."""
    n, c, h, w = x.shape
    if n != 1:
        raise NotImplementedError("SpaceToDepth of a batch has no lowering")
    shape = (1, c * blocksize**2, h // blocksize, w // blocksize)
    return emit("Reorg", [as_blob(x, x.shape[1:])], shape, {0: blocksize, 1: 1})
