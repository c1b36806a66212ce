"""XLA for the CPU, through JAX: wrong values with algsimp

abs(x * x) becomes x * x for integers as well, whose product wraps around and may be negative.

Seen with jax 0.10.2, jaxlib 0.10.2, and with 0.6.2.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import os

os.environ["JAX_PLATFORMS"] = "cpu"

import sys

import jax
import jax.numpy as jnp
import numpy as np


def program(x):
    return jnp.abs(x * x)


x = np.array([-31264, 200], np.int16)  # the squares are -31744 and -25536 in 16 bits
print("jax", jax.__version__, "numpy", np.__version__)
with jax.disable_jit():
    want = np.asarray(program(jnp.asarray(x)))
got = np.asarray(jax.jit(program)(x))
if not np.array_equal(want, got):
    print("BUG:", got.tolist(), "instead of", want.tolist())
    sys.exit(1)
print("the bug does not show:", got.tolist())
