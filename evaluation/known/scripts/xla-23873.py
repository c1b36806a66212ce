"""cumsum to booleans casts the sums of the numbers instead of the numbers."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_platforms", "cpu")


def main() -> int:
    """Return 1 if the bug shows, 0 if not."""
    got = jnp.cumulative_sum(jnp.array([[0.1], [0.1], [0.0]]), axis=-1, dtype=jnp.bool_)
    wanted = np.array([[True], [True], [False]])
    if not np.allclose(got, wanted, rtol=1e-3, equal_nan=True):
        print("BUG:", np.asarray(got).tolist(), "instead of", np.asarray(wanted).tolist())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
