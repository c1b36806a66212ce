"""Names that the other modules use."""

# ruff: noqa: ANN401 - tensors, and nested sequences of numbers

from typing import Any

import torch

F = torch.nn.functional


TYPES = (
    "float32", "float16", "float64", "bfloat16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16",
    "uint8", "bool",
)  # fmt: skip
"""Element types that have a lowering."""


def dtype_of(name: str) -> Any:
    """Return torch's element type for the ONNX name of one."""
    if name not in TYPES:
        raise NotImplementedError(f"element type {name} has no lowering")
    return getattr(torch, name)


def wrap(index: Any, size: int) -> Any:
    """Return `index` as int64, counted from the front where it was counted from the back of an axis of `size`."""
    index = index.to(torch.int64)
    return torch.where(index < 0, index + size, index)
