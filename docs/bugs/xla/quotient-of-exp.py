"""XLA for the CPU, through JAX: wrong values on special operands with algsimp

The pass algsimp makes exp(a) / exp(b) to exp(a - b), and a / exp(b) to a * exp(-b), without fast math: the quotient of
two infinities is 1 instead of NaN, and 1e38 / exp(88) is 0 instead of 0.605, because exp(-88) is flushed to zero.

Seen with jax 0.10.2, jaxlib 0.10.2.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import os

os.environ["JAX_PLATFORMS"] = "cpu"

import sys

import jax
import jax.numpy as jnp
import numpy as np


def of_exponentials(x, y):
    return jnp.exp(x) / jnp.exp(y)


def by_exponential(x, y):
    return x / jnp.exp(y)


print("jax", jax.__version__, "numpy", np.__version__)
wrong = 0
for program, *values in ((of_exponentials, 128.0, 128.0), (by_exponential, 1e38, 88.0)):
    operands = [np.float32(value) for value in values]
    compiled = jax.jit(program).lower(*operands)
    want = compiled.compile({"xla_disable_hlo_passes": "algsimp"})(*operands)
    got = compiled.compile()(*operands)
    if not np.allclose(want, got, rtol=0.01, atol=0, equal_nan=True):
        print(f"BUG: {program.__name__} of {values}: {got} instead of {want}")
        wrong += 1
if wrong:
    sys.exit(1)
print("the bug does not show")
