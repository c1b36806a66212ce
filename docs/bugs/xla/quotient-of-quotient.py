"""XLA for the CPU, through JAX: wrong values on special operands with algsimp

The pass algsimp makes (a / b) / c to a / (b * c), and a / (b / c) to a * c / b, without fast math: the new product
overflows where all values of the program are finite. 1e30 / 1e20 / 1e20 is 0, and 1e30 / (1e20 / 1e20) is infinite.

Seen with jax 0.10.2, jaxlib 0.10.2.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import os

os.environ["JAX_PLATFORMS"] = "cpu"

import sys

import jax
import numpy as np


def twice(a, b, c):
    return a / b / c


def by_quotient(a, b, c):
    return a / (b / c)


print("jax", jax.__version__, "numpy", np.__version__)
wrong = 0
values = (1e30, 1e20, 1e20)
operands = [np.float32(value) for value in values]
for program in (twice, by_quotient):
    want, got = program(*operands), jax.jit(program)(*operands)  # numpy, and XLA
    if not np.allclose(want, got, rtol=0.01, atol=0):
        print(f"BUG: {program.__name__} of {values}: {got} instead of {want}")
        wrong += 1
if wrong:
    sys.exit(1)
print("the bug does not show")
