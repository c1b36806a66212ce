"""Lowered programs as functions of torch, for targets whose compiler takes programs of torch."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from miscompile.core.case import Feed, Program
from miscompile.core.tensor import Tensor
from miscompile.graph.read import read
from miscompile.targets.lowering.program import UnloweredError
from miscompile.targets.lowering.table import load
from miscompile.targets.lowering.torch_program import LOWERINGS
from miscompile.targets.lowering.torch_program import program as lowered
from miscompile.targets.torch.runner import tensor
from miscompile.targets.torch.values import from_torch, to_torch

load(LOWERINGS)  # by the zygote, so that no worker reads the table again


class EagerSession:
    """A function of torch that is called eagerly."""

    def __init__(self, function: Callable[..., Sequence[torch.Tensor]]) -> None:
        self._function = function

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run on one feed. Raises UnloweredError for a missing output, which exporters leave out."""
        with torch.no_grad():
            results = self._function(*map(to_torch, feed))
        if any(value is None for value in results):
            raise UnloweredError("a missing output has no lowering")
        return tuple(from_torch(value.clone()) for value in results)


def function_of(program: Program, known: frozenset[str]) -> Callable[..., Sequence[torch.Tensor]]:
    """Return a program of `known` element types as a function of torch. Raises UnloweredError for others."""
    for port in (*program.inputs, *program.outputs):
        if port.dtype not in known:
            raise UnloweredError(f"element type {port.dtype} has no lowering")
    text = lowered(read(program.payload))
    space: dict[str, Any] = {"torch": torch}
    space |= {name: tensor(value.array, value.dtype) for name, value in text.constants.items()}
    exec(compile(text.source, "program.py", "exec"), space)
    function: Callable[..., Sequence[torch.Tensor]] = space["program"]
    return function


def zeros_of(program: Program) -> tuple[torch.Tensor, ...]:
    """Return zeros of the types and shapes of the inputs. Raises UnloweredError for an input without fixed sizes."""
    found = []
    for port in program.inputs:
        if port.shape is None or not all(isinstance(size, int) for size in port.shape):
            raise UnloweredError("an input without fixed sizes has no lowering")
        found.append(torch.zeros([int(size or 0) for size in port.shape], dtype=getattr(torch, port.dtype)))
    return tuple(found)
