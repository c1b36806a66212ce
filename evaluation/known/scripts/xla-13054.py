"""A fusion of a matrix product with what is around it computes one column for all."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_platforms", "cpu")


def main() -> int:
    """Return 1 if the bug shows, 0 if not."""
    weights = jnp.array([1.0, 2.0, 3.0], dtype=jnp.float32)
    points = jnp.ones((10**6, 3))

    def value(x: jax.Array, y: jax.Array) -> jax.Array:
        difference = y - x
        product = jnp.dot(jnp.dot(difference, jnp.zeros((3, 3))), difference)
        return jnp.dot(difference, weights) + product

    def mean(x: jax.Array) -> jax.Array:
        return jnp.mean(jax.vmap(lambda y: value(x, y))(points))

    got = jax.jit(jax.grad(mean))(jnp.ones(3))
    wanted = -weights
    if not np.allclose(got, wanted, rtol=1e-3, equal_nan=True):
        print("BUG:", np.asarray(got).tolist(), "instead of", np.asarray(wanted).tolist())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
