"""pad with two values fills the corners in another order than NumPy."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_platforms", "cpu")


def main() -> int:
    """Return 1 if the bug shows, 0 if not."""
    array = np.zeros((1, 1), np.float32)
    got = jnp.pad(array, (1, 1), constant_values=(1, 2))
    wanted = np.pad(array, (1, 1), constant_values=(1, 2))
    if not np.allclose(got, wanted, rtol=1e-3, equal_nan=True):
        print("BUG:", np.asarray(got).tolist(), "instead of", np.asarray(wanted).tolist())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
