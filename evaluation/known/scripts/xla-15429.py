"""Triangular solves of a batch divide by zero to something finite."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_platforms", "cpu")


def main() -> int:
    """Return 1 if the bug shows, 0 if not."""
    matrices = jnp.array(np.stack([np.zeros((2, 2)), np.eye(2)]), dtype=jnp.float32)
    solved = jax.lax.linalg.triangular_solve(matrices, jnp.ones((2, 2, 1)), left_side=True, lower=True)
    got = np.isfinite(np.asarray(solved[0])).any()
    wanted = False
    if not np.allclose(got, wanted, rtol=1e-3, equal_nan=True):
        print("BUG:", np.asarray(got).tolist(), "instead of", np.asarray(wanted).tolist())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
