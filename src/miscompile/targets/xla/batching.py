"""Mapping of a function over a new axis; standalone scripts contain it."""

import jax
import jax.numpy as jnp

from miscompile.targets.xla.runner import XlaFunction


def batched(function: XlaFunction) -> XlaFunction:
    """Return a function that runs `function` on two rows at once, of which the first one is its own inputs."""

    def call(*values: jax.Array) -> list[jax.Array]:
        floating = [jnp.issubdtype(value.dtype, jnp.floating) for value in values]
        others = [jnp.flip(value) if moves else value for value, moves in zip(values, floating, strict=True)]
        rows = [jnp.stack(pair) for pair in zip(values, others, strict=True)]
        results = jax.vmap(lambda *row: list(function(*row)), axis_size=2)(*rows)
        return [result[0] for result in results]

    return call
