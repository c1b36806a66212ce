"""Cutting, padding and reversing. Sources: the operator pages of the ONNX documentation."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from miscompile.targets.lowering.table import lowers


@lowers("Slice", static=(1, 2, 3, 4))
def slices(
    x: jax.Array,
    starts: tuple[int, ...],
    ends: tuple[int, ...],
    axes: tuple[int, ...] | None = None,
    steps: tuple[int, ...] | None = None,
) -> jax.Array:
    """A slice of some axes; starts and ends outside an axis are clamped to it."""
    index = [slice(None)] * x.ndim
    for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
        index[axes[place] if axes else place] = slice(start, end, steps[place] if steps else 1)
    return x[tuple(index)]


@lowers("Pad", static=(1, 3))
def pad(
    x: jax.Array,
    pads: tuple[int, ...],
    value: jax.Array | None = None,
    axes: tuple[int, ...] | None = None,
    *,
    mode: str = "constant",
) -> jax.Array:
    """x padded; negative padding crops."""
    widths = [(0, 0)] * x.ndim
    named = range(x.ndim) if axes is None else axes
    for axis, before, after in zip(named, pads[: len(named)], pads[len(named) :], strict=True):
        widths[axis] = (before, after)
    if mode == "constant":
        fill = jnp.zeros((), x.dtype) if value is None else value.reshape(())
        return lax.pad(x, fill, [(before, after, 0) for before, after in widths])
    kept = [
        slice(max(0, -before), size - max(0, -after)) for size, (before, after) in zip(x.shape, widths, strict=True)
    ]
    return jnp.pad(x[tuple(kept)], [(max(0, before), max(0, after)) for before, after in widths], mode)


@lowers("CenterCropPad", static=(1,))
def center_crop_pad(x: jax.Array, shape: tuple[int, ...], *, axes: tuple[int, ...] | None = None) -> jax.Array:
    """x cropped around its centre, or padded with zeros on both sides, to the given sizes."""
    widths = [(0, 0, 0)] * x.ndim
    for axis, size in zip(range(x.ndim) if axes is None else axes, shape, strict=True):
        missing = size - x.shape[axis]
        before = missing // 2 if missing > 0 else -(-missing // 2)
        widths[axis] = (before, missing - before, 0)
    return lax.pad(x, jnp.zeros((), x.dtype), widths)


@lowers("Trilu")
def triangle(x: jax.Array, k: jax.Array | None = None, *, upper: int = 1) -> jax.Array:
    """The elements on one side of diagonal `k`, and zeros on the other side."""
    distance = jnp.arange(x.shape[-1]) - jnp.arange(x.shape[-2])[:, None]
    k = 0 if k is None else k.reshape(())
    return jnp.where(distance >= k if upper else distance <= k, x, jnp.zeros_like(x))


@lowers("ReverseSequence")
def reverse_sequence(x: jax.Array, lengths: jax.Array, *, batch_axis: int = 1, time_axis: int = 0) -> jax.Array:
    """x with the first elements of each sequence, as many as its length, in reverse order."""
    batch_axis, time_axis = batch_axis % x.ndim, time_axis % x.ndim
    time = lax.broadcasted_iota(lengths.dtype, x.shape, time_axis)
    length = jnp.expand_dims(lengths, [axis for axis in range(x.ndim) if axis != batch_axis])
    return jnp.take_along_axis(x, jnp.where(time < length, length - 1 - time, time), time_axis)


@lowers("Col2Im", static=(1, 2))
def col2im(
    x: jax.Array,
    image: tuple[int, ...],
    block: tuple[int, ...],
    *,
    dilations: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
) -> jax.Array:
    """The sum of overlapping blocks, which are the columns of x, at their positions in the image."""
    rank = len(image)
    dilations, strides, pads = dilations or (1,) * rank, strides or (1,) * rank, pads or (0,) * 2 * rank
    padded = [size + pads[axis] + pads[axis + rank] for axis, size in enumerate(image)]
    reach = [(size - 1) * step + 1 for size, step in zip(block, dilations, strict=True)]
    counts = [(whole - most) // step + 1 for whole, most, step in zip(padded, reach, strides, strict=True)]
    columns = x.reshape(x.shape[0], x.shape[1] // int(np.prod(block)), *block, *counts)
    result = jnp.zeros((*columns.shape[:2], *padded), x.dtype)
    for place in np.ndindex(*block):
        starts = [offset * step for offset, step in zip(place, dilations, strict=True)]
        spans = [slice(a, a + count * step, step) for a, count, step in zip(starts, counts, strides, strict=True)]
        result = result.at[(..., *spans)].add(columns[(slice(None), slice(None), *place)])
    inner = [slice(pads[axis], pads[axis] + size) for axis, size in enumerate(image)]
    return result[(..., *inner)]
