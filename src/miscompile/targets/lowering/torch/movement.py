"""Operators that move elements and compute nothing."""

# ruff: noqa: ANN401 - tensors, and nested sequences of numbers

from typing import Any

import torch

from miscompile.targets.lowering.table import lowers


@lowers("Reshape", static=(1,))
def reshape(x: Any, shape: tuple[int, ...], *, allowzero: int = 0) -> Any:
    """x in another shape; a 0 copies the size of x."""
    return x.reshape([x.shape[i] if size == 0 and not allowzero else size for i, size in enumerate(shape)])


@lowers("Flatten")
def flatten(x: Any, *, axis: int = 1) -> Any:
    """x as a matrix: the axes before `axis` are its rows, the others its columns."""
    return x.reshape(x.shape[:axis].numel(), x.shape[axis:].numel())


@lowers("Squeeze", static=(1,))
def squeeze(x: Any, dims: tuple[int, ...] | None = None) -> Any:
    """x without the given axes, or without all axes of size one."""
    return torch.squeeze(x) if dims is None else torch.squeeze(x, dims)


@lowers("Unsqueeze", static=(1,))
def unsqueeze(x: Any, dims: tuple[int, ...]) -> Any:
    """x with new axes of size one."""
    rank = x.dim() + len(dims)
    for dim in sorted([dim % rank for dim in dims]):
        x = torch.unsqueeze(x, dim)
    return x


@lowers("Transpose")
def transpose(x: Any, *, perm: tuple[int, ...] | None = None) -> Any:
    """x with its axes in another order, by default reversed."""
    return torch.permute(x, perm if perm is not None else tuple(range(x.dim()))[::-1])


expand = lowers("Expand", static=(1,))(lambda x, shape: x.expand(torch.broadcast_shapes(x.shape, shape)))
tile = lowers("Tile", static=(1,))(lambda x, repeats: torch.tile(x, repeats))
concat = lowers("Concat")(lambda *xs, axis: torch.cat(xs, dim=axis))  # all operands, one after the other along an axis


@lowers("Split", static=(1,))
def split(x: Any, sizes: tuple[int, ...] | None = None, *, axis: int = 0, num_outputs: int = 0, outputs: int) -> Any:
    """Pieces of the given sizes along an axis, or of equal size except for the last one."""
    if sizes is None:
        size = (x.shape[axis] + outputs - 1) // outputs
        sizes = (*([size] * (outputs - 1)), x.shape[axis] - size * (outputs - 1))
    pieces = torch.split(x, list(sizes), dim=axis)
    return pieces if outputs > 1 else pieces[0]


@lowers("DepthToSpace")
def depth_to_space(x: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    """Channels rearranged into blocks of pixels."""
    if mode == "CRD":
        return torch.pixel_shuffle(x, blocksize)
    n, c, h, w = x.shape
    x = x.reshape(n, blocksize, blocksize, c // blocksize**2, h, w).permute(0, 3, 4, 1, 5, 2)
    return x.reshape(n, c // blocksize**2, h * blocksize, w * blocksize)


@lowers("SpaceToDepth")
def space_to_depth(x: Any, *, blocksize: int) -> Any:
    """Blocks of pixels rearranged into channels."""
    n, c, h, w = x.shape
    x = x.reshape(n, c, h // blocksize, blocksize, w // blocksize, blocksize).permute(0, 3, 5, 1, 2, 4)
    return x.reshape(n, c * blocksize**2, h // blocksize, w // blocksize)


@lowers("Slice", static=(1, 2, 3, 4))
def slices(x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    """A slice of x; an axis with a negative step is flipped, because torch has no negative steps."""
    index = [slice(None)] * x.dim()
    for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
        axis, step = axes[i] if axes else i, steps[i] if steps else 1
        if step < 0:
            x, last = torch.flip(x, (axis,)), x.shape[axis] - 1
            first = max(start + last + 1 if start < 0 else min(start, last), -1)
            stop = max(end + last + 1 if end < 0 else end, -1)
            start, end, step = last - first, max(last - stop, last - first), -step
        index[axis] = slice(start, end, step)
    return x[tuple(index)]


@lowers("Pad", static=(1, 2, 3))
def pad(x: Any, pads: Any, value: Any = None, axes: Any = None, *, mode: str = "constant") -> Any:
    """x padded with a value, its edge, its reflection or its other end; negative padding crops."""
    count = len(pads) // 2
    axes = range(x.dim()) if axes is None else [axis % x.dim() for axis in axes]
    sides = [(0, 0)] * x.dim()
    for i, axis in enumerate(axes):
        sides[axis] = (pads[i], pads[i + count])
    if mode == "constant":
        flat = [size for side in reversed(sides) for size in side]
        return torch.constant_pad_nd(x, flat, 0 if value is None else value[0] if isinstance(value, tuple) else value)
    for axis, (before, after) in enumerate(sides):
        if before or after:
            size = x.shape[axis]
            place = torch.arange(-before, size + after)
            if mode == "reflect":
                place = size - 1 - (size - 1 - place.abs()).abs()
            x = x.index_select(axis, place.clamp(0, size - 1) if mode == "edge" else place % size)
    return x


@lowers("CenterCropPad", static=(1,))
def center_crop_pad(x: Any, shape: tuple[int, ...], *, axes: tuple[int, ...] | None = None) -> Any:
    """x cropped or padded with zeros on both sides to the given sizes."""
    pads = [0] * (2 * x.dim())
    for axis, size in zip(range(x.dim()) if axes is None else axes, shape, strict=True):
        place, missing = x.dim() - 1 - axis % x.dim(), size - x.shape[axis]
        before = missing // 2 if missing > 0 else -(-missing // 2)
        pads[2 * place], pads[2 * place + 1] = before, missing - before
    return torch.constant_pad_nd(x, pads, 0)


@lowers("Trilu", static=(1,))
def trilu(x: Any, k: Any = 0, *, upper: int = 1) -> Any:
    """The upper or lower triangle of each matrix, else zero."""
    k = k[0] if isinstance(k, tuple) else k
    return torch.triu(x, k) if upper else torch.tril(x, k)


@lowers("ReverseSequence")
def reverse_sequence(x: Any, lengths: Any, *, batch_axis: int = 1, time_axis: int = 0) -> Any:
    """Each sequence reversed over its own length."""
    steps = torch.arange(x.shape[time_axis]).unsqueeze(batch_axis)
    lengths = lengths.unsqueeze(time_axis)
    place = torch.where(steps < lengths, lengths - 1 - steps, steps)
    return torch.gather(x, time_axis, place.reshape(*place.shape, *[1] * (x.dim() - 2)).expand(x.shape))


@lowers("Col2Im", static=(1, 2))
def col2im(
    x: Any, image: Any, block: Any, *, dilations: Any = (1, 1), pads: Any = (0, 0, 0, 0), strides: Any = (1, 1)
) -> Any:
    """The sum of overlapping blocks in an image of two axes."""
    if len(image) != 2:
        raise NotImplementedError("Col2Im has a lowering for two axes only")
    top, left, bottom, right = pads
    whole = (image[0] + top + bottom, image[1] + left + right)
    x = torch.nn.functional.fold(x, whole, block, dilation=dilations, stride=strides)
    return x[..., top : top + image[0], left : left + image[1]]
