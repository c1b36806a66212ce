"""Mapping of a function over a new axis; standalone scripts contain it."""

from collections.abc import Callable, Sequence

import torch


def batched(function: Callable[..., Sequence[torch.Tensor]]) -> Callable[..., Sequence[torch.Tensor]]:
    """Return a function that runs `function` on two rows at once, both of which are its own inputs.

    The function calls torch's own mapping, which raises an error for an operator that has no batching rule. It gets
    the values as they are where there are none.
    """

    def call(*values: torch.Tensor) -> Sequence[torch.Tensor]:
        if not values:
            return function()
        rows = [torch.stack([value, value]) for value in values]
        results = torch.vmap(lambda *row: tuple(function(*row)))(*rows)
        return [result[0] for result in results]

    return call
