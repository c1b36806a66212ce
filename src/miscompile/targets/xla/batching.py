"""Mapping of a function over a new axis; standalone scripts contain it."""

import jax
import jax.numpy as jnp

from miscompile.targets.xla.runner import XlaFunction


def batched(function: XlaFunction) -> XlaFunction:
    """Return a function that runs `function` on two rows at once, both of which are its own inputs."""

    def call(*values: jax.Array) -> list[jax.Array]:
        rows = [jnp.stack([value, value]) for value in values]
        results = jax.vmap(lambda *row: list(function(*row)), axis_size=2)(*rows)
        return [result[0] for result in results]

    return call
