"""Convolutions. Sources: the operator pages of the ONNX documentation."""

import jax
import jax.numpy as jnp
from jax import lax

from miscompile.targets.lowering.table import lowers
from miscompile.targets.xla.lowering.linear import centred

OptionalInts = tuple[int, ...] | None
Padding = list[tuple[int, int]]


def padding_of(
    sizes: tuple[int, ...], reach: tuple[int, ...], strides: tuple[int, ...], pads: OptionalInts, auto: str
) -> Padding:
    """Return the padding before and after each axis; `reach` holds the sizes of the dilated window."""
    if auto.startswith("SAME"):
        return list(lax.padtype_to_pads(sizes, reach, strides, "SAME" if auto == "SAME_UPPER" else auto))
    rank = len(sizes)
    return [(0, 0)] * rank if pads is None or auto == "VALID" else list(zip(pads[:rank], pads[rank:], strict=True))


@lowers("Conv")
def conv(
    x: jax.Array,
    w: jax.Array,
    b: jax.Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: OptionalInts = None,
    group: int = 1,
    kernel_shape: OptionalInts = None,
    pads: OptionalInts = None,
    strides: OptionalInts = None,
) -> jax.Array:
    """Convolution of images of any rank, channels first."""
    rank = x.ndim - 2
    strides, dilations = strides or (1,) * rank, dilations or (1,) * rank
    reach = tuple((size - 1) * step + 1 for size, step in zip(w.shape[2:], dilations, strict=True))
    padding = padding_of(x.shape[2:], reach, strides, pads, auto_pad)
    y = lax.conv_general_dilated(x, w, strides, padding, rhs_dilation=dilations, feature_group_count=group)
    return y if b is None else y + b.reshape(-1, *(1,) * rank)


@lowers("ConvInteger")
def conv_integer(
    x: jax.Array,
    w: jax.Array,
    x_zero: jax.Array | None = None,
    w_zero: jax.Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: OptionalInts = None,
    group: int = 1,
    kernel_shape: OptionalInts = None,
    pads: OptionalInts = None,
    strides: OptionalInts = None,
) -> jax.Array:
    """Convolution of integers minus their zero points, in 32 bits; padding has the value of the zero point."""
    return conv(
        centred(x, x_zero, 1),
        centred(w, w_zero, 0),
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        pads=pads,
        strides=strides,
    )


@lowers("ConvTranspose")
def conv_transpose(
    x: jax.Array,
    w: jax.Array,
    b: jax.Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: OptionalInts = None,
    group: int = 1,
    kernel_shape: OptionalInts = None,
    output_padding: OptionalInts = None,
    output_shape: OptionalInts = None,
    pads: OptionalInts = None,
    strides: OptionalInts = None,
) -> jax.Array:
    """Transposed convolution: a convolution of the image, dilated by the strides, with the mirrored kernel."""
    rank = x.ndim - 2
    strides, dilations = strides or (1,) * rank, dilations or (1,) * rank
    extra, pads = output_padding or (0,) * rank, pads or (0,) * 2 * rank
    padding = []
    for axis in range(rank):
        reach = (w.shape[2 + axis] - 1) * dilations[axis]
        before, after = pads[axis], pads[axis + rank]
        if output_shape is not None or auto_pad.startswith("SAME"):
            size = output_shape[-rank:][axis] if output_shape is not None else x.shape[2 + axis] * strides[axis]
            whole = (x.shape[2 + axis] - 1) * strides[axis] + extra[axis] + reach + 1 - size
            small, large = whole // 2, whole - whole // 2
            before, after = (small, large) if auto_pad == "SAME_UPPER" else (large, small)
        padding.append((reach - before, reach - after + extra[axis]))
    kernel = jnp.flip(w, range(2, w.ndim)).reshape(group, -1, *w.shape[1:]).swapaxes(1, 2)
    kernel = kernel.reshape(-1, *kernel.shape[2:])
    y = lax.conv_general_dilated(
        x, kernel, (1,) * rank, padding, lhs_dilation=strides, rhs_dilation=dilations, feature_group_count=group
    )
    return y if b is None else y + b.reshape(-1, *(1,) * rank)
