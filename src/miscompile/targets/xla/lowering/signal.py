"""Signals. Sources: the operator pages of the ONNX documentation."""

import jax
import jax.numpy as jnp
import numpy as np

from miscompile.targets.lowering.table import lowers


def complex_of(x: jax.Array) -> jax.Array:
    """Return complex numbers from the parts in the last axis; without an imaginary part the numbers are real."""
    wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    return wide[..., 0] + 0j if x.shape[-1] == 1 else wide[..., 0] + 1j * wide[..., 1]


def parts_of(x: jax.Array, dtype: np.dtype) -> jax.Array:
    """Return the parts of complex numbers in a new last axis."""
    return jnp.stack([jnp.real(x), jnp.imag(x)], -1).astype(dtype)


@lowers("DFT", static=(1, 2))
def dft(
    x: jax.Array,
    length: int | tuple[int, ...] | None = None,
    place: int | tuple[int, ...] | None = None,
    *,
    axis: int = 1,
    inverse: int = 0,
    onesided: int = 0,
    opset: int,
) -> jax.Array:
    """Discrete Fourier transform along an axis; `onesided` keeps only the first half of the result."""
    length = length[0] if isinstance(length, tuple) else length
    place = place[0] if isinstance(place, tuple) else place
    axis = (-2 if place is None else place) if opset >= 20 else axis
    axis = axis % x.ndim
    if inverse and onesided:
        return jnp.fft.irfft(complex_of(x), length, axis)[..., None].astype(x.dtype)
    y = (jnp.fft.ifft if inverse else jnp.fft.fft)(complex_of(x), length, axis)
    if onesided:
        y = jnp.take(y, jnp.arange(y.shape[axis] // 2 + 1), axis)
    return parts_of(y, x.dtype)


@lowers("STFT", static=(1, 3))
def stft(
    x: jax.Array,
    step: int | tuple[int, ...],
    window: jax.Array | None = None,
    length: int | tuple[int, ...] | None = None,
    *,
    onesided: int = 1,
) -> jax.Array:
    """Fourier transform of each frame of a signal."""
    step = step[0] if isinstance(step, tuple) else step
    if length is None:
        length = x.shape[1] if window is None else window.shape[0]
    size = length[0] if isinstance(length, tuple) else length
    starts = np.arange(0, x.shape[1] - size + 1, step)
    frames = complex_of(x)[:, starts[:, None] + np.arange(size)]
    y = jnp.fft.fft(frames if window is None else frames * window.astype(frames.real.dtype))
    return parts_of(y[..., : size // 2 + 1] if onesided else y, x.dtype)


@lowers("HannWindow", "HammingWindow", "BlackmanWindow", static=(0,))
def window_of_cosines(
    size: int | tuple[int, ...], *, output_datatype: str = "float32", periodic: int = 1, op: str
) -> jax.Array:
    """A window for signals: a sum of cosines."""
    size = size[0] if isinstance(size, tuple) else size
    angle = (
        2
        * np.pi
        * jnp.arange(size, dtype=jnp.promote_types(output_datatype, "float32"))
        / (size if periodic else size - 1)
    )
    if op == "BlackmanWindow":
        y = 0.42 - 0.5 * jnp.cos(angle) + 0.08 * jnp.cos(2 * angle)
    else:
        alpha = 0.5 if op == "HannWindow" else 25 / 46
        y = alpha - (1 - alpha) * jnp.cos(angle)
    return y.astype(output_datatype)
