"""Capture of a module by torch, and the elements of its tensors; workers call these functions before a compiler's
front end, and standalone scripts contain those that they need."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

KINDS = {
    "torch.bfloat16": 16,
    "torch.float8_e4m3fn": 17,
    "torch.float8_e4m3fnuz": 18,
    "torch.float8_e5m2": 19,
    "torch.float8_e5m2fnuz": 20,
    "torch.float8_e8m0fnu": 24,
}
"""Element types that numpy lacks, with their numbers in onnx.TensorProto."""


class FunctionModule(torch.nn.Module):  # type: ignore[misc]  # torch is not read by the type checker
    """A function of tensors as a module, which `torch.export` requires."""

    def __init__(self, function: Callable[..., Sequence[torch.Tensor]]) -> None:
        super().__init__()
        self._function = [function]

    def forward(self, *inputs: torch.Tensor) -> Sequence[torch.Tensor]:
        """Call the function."""
        return self._function[0](*inputs)


def export_module(module: torch.nn.Module, given: tuple[torch.Tensor, ...]) -> Any:  # noqa: ANN401 - an ExportedProgram
    """Return the program that `torch.export` captures. Raises whatever it raises."""
    with torch.no_grad():
        return torch.export.export(module, given)


def words_of(value: torch.Tensor) -> tuple[NDArray[np.generic], int]:
    """Return the elements of a tensor, and the number of its type where numpy lacks that; then they are words."""
    value, kind = value.detach().resolve_conj().resolve_neg().contiguous(), KINDS.get(str(value.dtype), 0)
    if kind == 0:
        return value.numpy(), kind
    size = value.element_size()
    return value.view(torch.int16 if size == 2 else torch.uint8).numpy().view(f"u{size}"), kind


def tensor(words: NDArray[np.generic], dtype: str) -> torch.Tensor:
    """Return a copy of an array as a tensor; bfloat16 is passed as 16-bit words."""
    array = np.array(words, order="C")
    if dtype == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def from_torch(value: torch.Tensor) -> tuple[NDArray[np.generic], bool]:
    """Return the elements of a tensor, and whether they are the words of bfloat16."""
    value = value.detach().cpu().contiguous()
    if value.dtype == torch.bfloat16:
        return value.view(torch.int16).numpy().view(np.uint16), True
    return value.numpy(), False
