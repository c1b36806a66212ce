"""Quantisation. Sources: the operator pages of the ONNX documentation."""

import jax
import jax.numpy as jnp

from miscompile.targets.lowering.table import lowers
from miscompile.targets.xla.lowering.casting import convert, element_type
from miscompile.targets.xla.lowering.convolution import OptionalInts, conv
from miscompile.targets.xla.lowering.linear import centred


def saturated(x: jax.Array, dtype: str) -> jax.Array:
    """Round half to even and convert to integers; numbers outside the range saturate."""
    info = jnp.iinfo(dtype)
    return jnp.clip(jnp.round(x), float(info.min), float(info.max)).astype(dtype)


def laid_out(parameter: jax.Array, x: jax.Array, axis: int, block: int) -> jax.Array:
    """Return scales or zero points (per tensor, per index of `axis`, or per block) in a shape that broadcasts to x."""
    if block:
        whole = jnp.repeat(parameter, block, axis)
        return whole[tuple(slice(size) for size in x.shape)]
    if parameter.size == 1:
        return parameter.reshape(())
    return jnp.expand_dims(parameter, [place for place in range(x.ndim) if place != axis % x.ndim])


@lowers("QuantizeLinear")
def quantize_linear(
    x: jax.Array,
    scale: jax.Array,
    zero: jax.Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: str = "",
    precision: int = 0,
    saturate: int = 1,
) -> jax.Array:
    """x divided by the scale, rounded half to even, plus the zero point, saturated."""
    if precision:
        raise NotImplementedError("QuantizeLinear with a precision")
    dtype = zero.dtype if zero is not None else element_type(output_dtype or "uint8")
    y = x / laid_out(scale, x, axis, block_size)
    if "float" in str(dtype):
        return convert(y, dtype, saturate)
    y = jnp.round(y.astype(jnp.float32))
    if zero is not None:
        y = y + laid_out(zero, x, axis, block_size).astype(jnp.float32)
    return saturated(y, dtype)


@lowers("DequantizeLinear")
def dequantize_linear(
    x: jax.Array,
    scale: jax.Array,
    zero: jax.Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: str = "",
) -> jax.Array:
    """Difference from the zero point, times the scale."""
    if "float" in str(x.dtype):
        y = x.astype(jnp.float32)
    else:
        y = x.astype(jnp.int32)
        y = y if zero is None else y - laid_out(zero, x, axis, block_size).astype(jnp.int32)
    y = y.astype(jnp.float32) * laid_out(scale, x, axis, block_size).astype(jnp.float32)
    return y.astype(element_type(output_dtype) if output_dtype else scale.dtype)


@lowers("DynamicQuantizeLinear")
def dynamic_quantize_linear(x: jax.Array, *, outputs: int) -> jax.Array | tuple[jax.Array, ...]:
    """x quantised to 8 bits over its own range, then the scale and the zero point."""
    low, high = jnp.minimum(jnp.min(x), 0), jnp.maximum(jnp.max(x), 0)
    scale = jnp.where(high > low, (high - low) / 255, 1)
    zero = saturated(-low / scale, "uint8")
    y = saturated(jnp.round(x / scale) + zero.astype(jnp.float32), "uint8")
    return y if outputs == 1 else (y, scale, zero)[:outputs]


def requantized(sums: jax.Array, factor: jax.Array, scale: jax.Array, zero: jax.Array) -> jax.Array:
    """Return 32-bit sums times `factor`, quantised by `scale` and `zero`."""
    y = jnp.round(sums.astype(jnp.float32) * (factor / scale).astype(jnp.float32))
    return saturated(y + zero.astype(jnp.float32), zero.dtype)


@lowers("QLinearMatMul")
def qlinear_matmul(
    a: jax.Array,
    a_scale: jax.Array,
    a_zero: jax.Array,
    b: jax.Array,
    b_scale: jax.Array,
    b_zero: jax.Array,
    y_scale: jax.Array,
    y_zero: jax.Array,
) -> jax.Array:
    """Product of quantised matrices; there may be one scale per row of a and y, and per column of b."""
    sums = jnp.matmul(centred(a, a_zero, -2), centred(b, b_zero, -1))
    rows = (scale[:, None] if scale.ndim == 1 and sums.ndim > 1 else scale for scale in (a_scale, y_scale))
    a_scale, y_scale = rows
    return requantized(
        sums, a_scale * b_scale, y_scale, y_zero[:, None] if y_zero.ndim == 1 and sums.ndim > 1 else y_zero
    )


@lowers("QLinearConv")
def qlinear_conv(
    x: jax.Array,
    x_scale: jax.Array,
    x_zero: jax.Array,
    w: jax.Array,
    w_scale: jax.Array,
    w_zero: jax.Array,
    y_scale: jax.Array,
    y_zero: jax.Array,
    b: jax.Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: OptionalInts = None,
    group: int = 1,
    kernel_shape: OptionalInts = None,
    pads: OptionalInts = None,
    strides: OptionalInts = None,
) -> jax.Array:
    """Convolution of quantised images; the filters may have one scale per output channel."""
    sums = conv(
        centred(x, x_zero, 1),
        centred(w, w_zero, 0),
        b,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        pads=pads,
        strides=strides,
    )
    w_scale = w_scale.reshape(-1, *(1,) * (x.ndim - 2))
    return requantized(sums, x_scale.reshape(()) * w_scale, y_scale.reshape(()), y_zero.reshape(()))
