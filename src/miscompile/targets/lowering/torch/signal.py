"""Fourier transforms."""

# ruff: noqa: ANN401 - tensors, and nested sequences of numbers

from typing import Any

import torch

from miscompile.targets.lowering.table import lowers


def need_precise(x: Any) -> None:
    """Raise NotImplementedError for element types that torch's transforms do not support on CPU."""
    if x.dtype not in (torch.float32, torch.float64):
        raise NotImplementedError("a Fourier transform of 16-bit floats has no lowering")


@lowers("DFT", static=(1, 2))
def dft(
    x: Any, length: Any = None, place: Any = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0, opset: int
) -> Any:
    """The discrete Fourier transform; the last axis holds real parts, or real and imaginary ones."""
    need_precise(x)
    if opset >= 20:
        axis = -2 if place is None else place[0] if isinstance(place, tuple) else place
    length = length[0] if isinstance(length, tuple) else length
    axis = axis % x.dim()
    if x.shape[-1] == 1 and onesided and not inverse:
        return torch.view_as_real(torch.fft.rfft(x.squeeze(-1), length, axis))
    if onesided:
        raise NotImplementedError("a one-sided inverse or complex DFT has no lowering")
    z = torch.view_as_complex(x.contiguous()) if x.shape[-1] == 2 else x.squeeze(-1)
    return torch.view_as_real((torch.fft.ifft if inverse else torch.fft.fft)(z, length, axis).resolve_conj())


@lowers("STFT", static=(1, 3))
def stft(x: Any, step: Any, window: Any = None, length: Any = None, *, onesided: int = 1) -> Any:
    """The Fourier transforms of overlapping frames."""
    need_precise(x)
    step = step[0] if isinstance(step, tuple) else step
    length = length[0] if isinstance(length, tuple) else length
    length = window.shape[0] if length is None else length
    z = torch.view_as_complex(x.contiguous()) if x.shape[-1] == 2 else x.squeeze(-1)
    frames = z.unfold(1, length, step)
    frames = frames if window is None else frames * window
    return torch.view_as_real((torch.fft.rfft if onesided else torch.fft.fft)(frames))
