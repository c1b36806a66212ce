"""Derivatives by torch: `torch.func` inside of one function, or autograd around a compiled one.

Standalone scripts contain the functions that they need.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from miscompile.targets.directions import FLOATS, direction

TensorFunction = Callable[..., Sequence[torch.Tensor]]


def moving_places(values: Sequence[torch.Tensor]) -> list[int]:
    """Return the places of the values that have derivatives."""
    return [place for place, value in enumerate(values) if str(value.dtype).removeprefix("torch.") in FLOATS]


def directions_like(values: Sequence[torch.Tensor], places: Sequence[int], seed: int) -> tuple[torch.Tensor, ...]:
    """Return a direction for each of the `values` at these places."""
    return tuple(
        torch.from_numpy(direction(tuple(values[place].shape), seed, place)).to(values[place]) for place in places
    )


def differentiated(
    function: TensorFunction, mode: str, inputs: Sequence[int], along: Sequence[torch.Tensor], outputs: Sequence[int]
) -> TensorFunction:
    """Return a function with the results of `function` and, after them, its derivatives.

    `inputs` and `outputs` are the places of the values that have derivatives; `along` are the directions: one for each
    of the outputs in the modes `reverse` and `training`, one for each of the inputs in the mode `forward`.
    """

    def call(*values: torch.Tensor) -> Sequence[torch.Tensor]:
        def moved(*some: torch.Tensor) -> Any:  # noqa: ANN401 - two tuples of tensors
            given = list(values)
            for place, value in zip(inputs, some, strict=True):
                given[place] = value
            results = tuple(function(*given))
            return tuple([results[place] for place in outputs]), results

        starts = tuple([values[place] for place in inputs])
        if mode == "forward":
            _, found, results = torch.func.jvp(moved, starts, tuple(along), has_aux=True)
        else:
            _, pull, results = torch.func.vjp(moved, *starts, has_aux=True)
            found = pull(tuple(along))
        return (*results, *found)

    return call


def trained(
    function: TensorFunction, values: Sequence[torch.Tensor], inputs: Sequence[int], along: Sequence[torch.Tensor],
    outputs: Sequence[int],
) -> Sequence[torch.Tensor]:  # fmt: skip
    """Return the results of `function`, and the gradients of its inputs by a backward pass after it."""
    with torch.enable_grad():
        given = [value.detach() for value in values]
        for place in inputs:
            given[place].requires_grad_()
        results = function(*given)
        pairs = [(results[place], way) for place, way in zip(outputs, along, strict=True)]
        moving = [(result, way) for result, way in pairs if result.requires_grad]
        starts = [given[place] for place in inputs]
        if not moving:
            return [*(result.detach() for result in results), *(torch.zeros_like(start) for start in starts)]
        ends, ways = zip(*moving, strict=True)
        found = torch.autograd.grad(ends, starts, ways, allow_unused=True, materialize_grads=True)
    return [*(result.detach() for result in results), *found]


def product(found: Sequence[torch.Tensor], along: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the sum of the products of derivatives and directions, as a float64."""
    total = torch.zeros((), dtype=torch.float64)
    for value, way in zip(found, along, strict=True):
        total = total + (value.double() * way.double()).sum().cpu()
    return total


def with_derivatives(
    function: TensorFunction, compiled: Callable[[TensorFunction], TensorFunction], mode: str, unoptimised: bool,
    inputs: Sequence[int], starts: Sequence[torch.Tensor], outputs: Sequence[int], ends: Sequence[torch.Tensor],
) -> TensorFunction:  # fmt: skip
    """Return a function with the results of `function` and, after them, its derivatives in a mode.

    `compiled` compiles whatever is compiled in that mode. `starts` are directions of the inputs at the places `inputs`,
    `ends` those of the outputs. In the mode `adjoint` an unoptimised build computes in forward mode. Raises
    NotImplementedError for a program without derivatives.
    """
    if not inputs or not outputs:
        raise NotImplementedError("the program has nothing to differentiate")
    if mode == "training":
        made = compiled(function)
        return lambda *values: trained(made, values, inputs, ends, outputs)
    multiplied = mode in ("adjoint", "pullback")
    way = ("forward" if unoptimised and mode == "adjoint" else "reverse") if multiplied else mode
    made = compiled(differentiated(function, way, inputs, starts if way == "forward" else ends, outputs))
    if not multiplied:
        return made
    others = ends if way == "forward" else starts

    def call(*values: torch.Tensor) -> Sequence[torch.Tensor]:
        results = made(*values)
        rest = len(results) - len(others)
        return (*results[:rest], product(results[rest:], others))

    return call
