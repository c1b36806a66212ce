"""Derivatives by JAX: of a function that is then compiled as a whole, or run call by call.

Standalone scripts contain the functions that they need.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from miscompile.targets.directions import FLOATS, direction
from miscompile.targets.xla.runner import XlaFunction


def moving_places(values: Sequence[Any]) -> list[int]:
    """Return the places of the values (arrays, or shapes and types) that have derivatives."""
    return [place for place, value in enumerate(values) if value.dtype.name in FLOATS]


def directions_like(values: Sequence[Any], places: Sequence[int], seed: int) -> list[Any]:
    """Return a direction for each of the `values` (arrays, or shapes and types) at these places."""
    drawn = {place: np.asarray(direction(tuple(values[place].shape), seed, place)) for place in places}
    return [numbers.astype(values[place].dtype) for place, numbers in drawn.items()]


def differentiated(
    function: XlaFunction, mode: str, inputs: Sequence[int], along: Sequence[Any], outputs: Sequence[int]
) -> XlaFunction:
    """Return a function with the results of `function` and, after them, its derivatives.

    `inputs` and `outputs` are the places of the values that have derivatives; `along` are the directions: one for each
    of the inputs in the mode `forward`, else one for each of the outputs.
    """

    def call(*values: jax.Array) -> Sequence[jax.Array]:
        def moved(*some: jax.Array) -> tuple[list[jax.Array], list[jax.Array]]:
            given = list(values)
            for place, value in zip(inputs, some, strict=True):
                given[place] = value
            results = [jnp.asarray(result) for result in function(*given)]
            return [results[place] for place in outputs], results

        starts = tuple(values[place] for place in inputs)
        if mode == "forward":
            _, found, results = jax.jvp(moved, starts, tuple(along), has_aux=True)
        else:
            _, pull, results = jax.vjp(moved, *starts, has_aux=True)
            found = pull([jnp.asarray(way) for way in along])
        return (*results, *found)

    return call


def product(found: Sequence[jax.Array], along: Sequence[Any]) -> jax.Array:
    """Return the sum of the products of derivatives and directions, as a float64."""
    total = jnp.zeros((), jnp.float64)
    for value, way in zip(found, along, strict=True):
        total = total + (value.astype(jnp.float64) * jnp.asarray(way).astype(jnp.float64)).sum()
    return total


def with_derivatives(
    function: XlaFunction, mode: str, unoptimised: bool,
    inputs: Sequence[int], starts: Sequence[Any], outputs: Sequence[int], ends: Sequence[Any],
) -> XlaFunction:  # fmt: skip
    """Return a function with the results of `function` and, after them, its derivatives in a mode.

    `starts` are directions of the inputs at the places `inputs`, `ends` those of the outputs. In the mode `adjoint` an
    unoptimised build computes in forward mode. Raises NotImplementedError for a program without derivatives.
    """
    if not inputs or not outputs:
        raise NotImplementedError("the program has nothing to differentiate")
    multiplied = mode in ("adjoint", "pullback")
    way = ("forward" if unoptimised and mode == "adjoint" else "reverse") if multiplied else mode
    made = differentiated(function, way, inputs, starts if way == "forward" else ends, outputs)
    if not multiplied:
        return made
    others = ends if way == "forward" else starts

    def call(*values: jax.Array) -> Sequence[jax.Array]:
        results = made(*values)
        rest = len(results) - len(others)
        return (*results[:rest], product(results[rest:], others))

    return call
