"""Mapping of a function over a new axis; standalone scripts contain it."""

from collections.abc import Callable, Sequence

import torch


def batched(function: Callable[..., Sequence[torch.Tensor]]) -> Callable[..., Sequence[torch.Tensor]]:
    """Return a function that runs `function` on two rows at once, of which the first one is its own inputs.

    The function calls torch's own mapping, which raises an error for an operator that has no batching rule. It gets
    the values as they are where there are none.
    """

    def call(*values: torch.Tensor) -> Sequence[torch.Tensor]:
        if not values:
            return function()
        others = [value.flip(tuple(range(value.dim()))) if value.is_floating_point() else value for value in values]
        rows = [torch.stack(pair) for pair in zip(values, others, strict=True)]
        results = torch.vmap(lambda *row: tuple(function(*row)))(*rows)
        return [result[0] for result in results]

    return call
