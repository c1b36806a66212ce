"""XLA for the CPU, through JAX: wrong values on special operands with fusion

Exp (float32) limits its operand to 88.8 and relies on its last product to overflow, and code generation contracts this
product with an addition behind it: exp(inf) - 3e38 is finite, and exp(inf) - exp(inf) is infinite.

Without the pass `fusion` the addition is a kernel of its own, and the results are right.

Seen with jax 0.10.2, jaxlib 0.10.2.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import os

os.environ["JAX_PLATFORMS"] = "cpu"

import sys

import jax
import jax.numpy as jnp
import numpy as np


def number(x, y):
    return jnp.exp(x) + y


def difference(x, y):
    return jnp.exp(x) - jnp.exp(y)


print("jax", jax.__version__, "numpy", np.__version__)
CASES = ((number, np.inf, -3e38), (number, 100.0, -np.inf), (difference, np.inf, np.inf))
wrong = 0
for program, *values in CASES:
    operands = [np.float32(value) for value in values]
    with jax.disable_jit(), np.errstate(over="ignore", invalid="ignore"):
        want = program(*operands)  # each operation is compiled alone
    got = jax.jit(program)(*operands)
    if not np.array_equal(want, got, equal_nan=True):
        print(f"BUG: {program.__name__} of {values}: {got} instead of {want}")
        wrong += 1
if wrong:
    sys.exit(1)
print("the bug does not show")
