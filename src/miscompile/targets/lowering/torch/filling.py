"""Operators that make values from sizes and bounds."""

# ruff: noqa: ANN401 - tensors, and nested sequences of numbers

from typing import Any

import torch

from miscompile.targets.lowering.table import lowers
from miscompile.targets.lowering.torch.names import dtype_of

shape = lowers("Shape")(lambda x, *, start=0, end=None: torch.tensor(x.shape[start:end], dtype=torch.int64))
size = lowers("Size")(lambda x: torch.tensor(x.numel(), dtype=torch.int64))


@lowers("ConstantOfShape", static=(0,), plain=("value",))
def constant_of_shape(shape: tuple[int, ...], *, value: Any = None) -> Any:
    """A tensor of one value."""
    return torch.zeros(shape) if value is None else torch.full(shape, value[0], dtype=dtype_of(value[1]))


@lowers("Range", static=(0, 1, 2))
def spaced(start: Any, limit: Any, delta: Any, *, types: tuple[str, ...]) -> Any:
    """Numbers from `start` to `limit`, which is excluded, in steps of `delta`."""
    return torch.arange(start, limit, delta, dtype=dtype_of(types[0]))


@lowers("EyeLike")
def eye_like(x: Any, *, dtype: str = "", k: int = 0) -> Any:
    """Ones on a diagonal, else zero."""
    rows, columns = x.shape
    ones = torch.arange(rows).unsqueeze(1) + k == torch.arange(columns)
    return ones.to(dtype_of(dtype) if dtype else x.dtype)


@lowers("HannWindow", static=(0,))
def hann_window(size: int, *, periodic: int = 1, output_datatype: str = "float32") -> Any:
    """A Hann window."""
    return torch.hann_window(size, bool(periodic), dtype=dtype_of(output_datatype))


@lowers("HammingWindow", static=(0,))
def hamming_window(size: int, *, periodic: int = 1, output_datatype: str = "float32") -> Any:
    """A Hamming window."""
    return torch.hamming_window(size, bool(periodic), 25 / 46, 21 / 46, dtype=dtype_of(output_datatype))


@lowers("BlackmanWindow", static=(0,))
def blackman_window(size: int, *, periodic: int = 1, output_datatype: str = "float32") -> Any:
    """A Blackman window."""
    return torch.blackman_window(size, bool(periodic), dtype=dtype_of(output_datatype))
