"""Inputs with other strides: equal values that lie elsewhere in memory; standalone scripts contain what they need.

A model is traced with the strides of its inputs, and Inductor chooses the order of loops, vectors and tiles by them.
Exported programs and library tests nearly always have contiguous inputs. In people's programs they are transposed,
sliced, or have channels last.
"""

import random
from collections.abc import Sequence

import torch

LAYOUTS = ("contiguous", "reversed", "rotated", "spread", "inner")
"""Ways in which a tensor may lie in memory. `reversed`: its first dimension is the innermost one. `rotated`: its second
dimension is, as with channels last. `spread`: between two elements lies another one. `inner`: it is the inner part of a
larger tensor, so that it begins behind the start of its memory, and its rows have gaps between them."""

FILLER = 77
"""The value of elements that are not part of the tensor."""


def with_strides(values: Sequence[torch.Tensor], seed: int) -> list[torch.Tensor]:
    """Return tensors with the same elements, each in a layout that `seed` and its place draw."""
    return [in_layout(value, random.Random(f"{seed} {place}").choice(LAYOUTS)) for place, value in enumerate(values)]


def in_layout(value: torch.Tensor, layout: str) -> torch.Tensor:
    """Return a tensor of the same elements in one of `LAYOUTS`. A scalar stays as it is."""
    if not value.dim() or layout == "contiguous":
        return value.contiguous()
    dims = list(range(value.dim()))
    if layout in ("reversed", "rotated"):
        order = dims[::-1] if layout == "reversed" else [dims[0], *dims[2:], *dims[1:2]]
        back = sorted(dims, key=order.__getitem__)
        return value.permute(order).contiguous().permute(back)
    if layout == "spread":
        whole = torch.full((*value.shape[:-1], 2 * value.shape[-1]), FILLER, dtype=value.dtype, device=value.device)
        part = whole[..., ::2]
    else:
        whole = torch.full([size + 2 for size in value.shape], FILLER, dtype=value.dtype, device=value.device)
        part = whole[tuple(slice(1, size + 1) for size in value.shape)]
    part.copy_(value)
    return part
