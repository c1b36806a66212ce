"""Pooling over windows and over whole images."""

# ruff: noqa: ANN401 - tensors, and nested sequences of numbers

from typing import Any

import torch

from miscompile.targets.lowering.table import lowers
from miscompile.targets.lowering.torch.convolution import pad_spatial
from miscompile.targets.lowering.torch.names import F
from miscompile.targets.lowering.windows import margins


def overhang(x: Any, kernel: Any, strides: Any, dilations: Any, sides: Any, ceil_mode: int) -> Any:
    """Return by how much the last window of each axis exceeds the padding; no window begins in the end padding."""
    found = []
    for size, k, s, d, (before, after) in zip(x.shape[2:], kernel, strides, dilations, sides, strict=True):
        room = size + before + after - d * (k - 1) - 1
        more = (room + s - 1) // s
        last = more if ceil_mode and more * s < size + before else room // s
        found.append(max(last * s - room, 0))
    return found


def windows(x: Any, kernel: Any, strides: Any, dilations: Any) -> Any:
    """Return every window of x, its elements in additional last axes."""
    for i, (k, s, d) in enumerate(zip(kernel, strides, dilations, strict=True)):
        x = x.unfold(i + 2, d * (k - 1) + 1, s)[..., ::d]
    return x


@lowers("MaxPool")
def max_pool(
    x: Any,
    *,
    kernel_shape: Any,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Any = None,
    pads: Any = None,
    storage_order: int = 0,
    strides: Any = None,
    outputs: int,
) -> Any:
    """The largest element of each window, and its index in x."""
    rank = len(kernel_shape)
    if rank not in (1, 2, 3):
        raise NotImplementedError("MaxPool has a lowering for one to three axes only")
    pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[rank - 1]
    strides, dilations = strides or (1,) * rank, dilations or (1,) * rank
    sides = margins(x, kernel_shape, strides, dilations, pads, auto_pad)
    over = overhang(x, kernel_shape, strides, dilations, sides, ceil_mode)
    if all(a == b <= k // 2 for (a, b), k in zip(sides, kernel_shape, strict=True)) and not any(over):
        sizes, padding = x.shape[2:], tuple([before for before, _ in sides])
        y = pool(x, kernel_shape, strides, padding, dilations, return_indices=outputs > 1)
        corner = (0,) * rank
    else:
        least = float("-inf") if x.is_floating_point() else torch.iinfo(x.dtype).min
        corner = tuple([before for before, _ in sides])
        x = pad_spatial(x, [(before, after + o) for (before, after), o in zip(sides, over, strict=True)], least)
        y = pool(x, kernel_shape, strides, 0, dilations, return_indices=outputs > 1)
        sizes = [size - a - b - o for size, (a, b), o in zip(x.shape[2:], sides, over, strict=True)]
    return (y[0], flat_places(y[1], x.shape, sizes, corner, storage_order)) if outputs > 1 else y


def flat_places(place: Any, padded: Any, sizes: Any, corner: Any, storage_order: int) -> Any:
    """Return flat indices within padded images of shape `padded` as flat indices within the tensor without padding."""
    coordinates: list[Any] = []
    for size, before in zip(reversed(padded[2:]), reversed(corner), strict=True):
        coordinates.insert(0, place % size - before)
        place = place // size
    image = torch.arange(padded[0] * padded[1]).reshape(padded[0], padded[1], *[1] * len(sizes))
    flat, pairs = 0, list(zip(sizes, coordinates, strict=True))
    for size, coordinate in reversed(pairs) if storage_order else pairs:
        flat = flat * size + coordinate
    for size in sizes:
        image = image * size
    return image + flat


@lowers("AveragePool")
def average_pool(
    x: Any,
    *,
    kernel_shape: Any,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Any = None,
    pads: Any = None,
    strides: Any = None,
) -> Any:
    """The mean of each window, with or without its padding."""
    rank = len(kernel_shape)
    strides, dilations = strides or (1,) * rank, dilations or (1,) * rank
    sides = margins(x, kernel_shape, strides, dilations, pads, auto_pad)
    over = overhang(x, kernel_shape, strides, dilations, sides, ceil_mode)
    alike = all(a == b <= k // 2 for (a, b), k in zip(sides, kernel_shape, strict=True))
    if alike and max(dilations) == 1 and rank <= 3 and not any(over):
        pool = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[rank - 1]
        padding = tuple([before for before, _ in sides])
        return pool(x, kernel_shape, strides, padding, False, bool(count_include_pad))
    counted = torch.ones((1, 1, *x.shape[2:]), dtype=x.dtype)
    counted = pad_spatial(pad_spatial(counted, sides, float(count_include_pad)), [(0, o) for o in over])
    x = pad_spatial(x, [(before, after + o) for (before, after), o in zip(sides, over, strict=True)])
    last = tuple(range(-rank, 0))
    total = windows(x, kernel_shape, strides, dilations).sum(last)
    return total / windows(counted, kernel_shape, strides, dilations).sum(last)


@lowers("LpPool")
def lp_pool(
    x: Any,
    *,
    kernel_shape: Any,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Any = None,
    p: int = 2,
    pads: Any = None,
    strides: Any = None,
) -> Any:
    """The p-norm of each window."""
    rank = len(kernel_shape)
    strides, dilations = strides or (1,) * rank, dilations or (1,) * rank
    sides = margins(x, kernel_shape, strides, dilations, pads, auto_pad)
    over = overhang(x, kernel_shape, strides, dilations, sides, ceil_mode)
    x = pad_spatial(torch.abs(x), [(before, after + o) for (before, after), o in zip(sides, over, strict=True)])
    if max(dilations) == 1 and rank == 2:
        return F.lp_pool2d(x, p, kernel_shape, strides)
    return torch.linalg.vector_norm(windows(x, kernel_shape, strides, dilations), p, tuple(range(-rank, 0)))


global_average_pool = lowers("GlobalAveragePool")(lambda x: torch.mean(x, tuple(range(2, x.dim())), keepdim=True))
global_max_pool = lowers("GlobalMaxPool")(lambda x: torch.amax(x, tuple(range(2, x.dim())), keepdim=True))


@lowers("GlobalLpPool")
def global_lp_pool(x: Any, *, p: int = 2) -> Any:
    """The p-norm of each image."""
    return torch.linalg.vector_norm(x, p, tuple(range(2, x.dim())), keepdim=True)
