"""XLA for the CPU, through JAX: a wrong gradient

The gradient of a convolution of constants, scaled by its argument: XLA folds the convolution, and moves the reshapes of
its canonical form to the wrong place, so that the sum over the pixels adds other elements. It takes algsimp,
constant_folding, convolution-canonicalization and reshape-mover together.

Seen with jax 0.6.2, jaxlib 0.6.2; not with 0.10.2.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import os

os.environ["JAX_PLATFORMS"] = "cpu"

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

image = np.array([[[[-2.0, 0.0]]]], np.float32)
weights = np.ones((2, 1, 1, 1), np.float32)
ends = np.array([[[[0.75, -0.5]], [[-1.25, 2.0]]]], np.float32)


def program(scale):
    return lax.conv_general_dilated(jnp.asarray(image), jnp.asarray(weights), (1, 1), [(0, 0), (0, 0)]) * scale


def gradient(scale):
    return jax.vjp(program, scale)[1](jnp.asarray(ends))[0]


scale = np.zeros((2, 1, 1), np.float32)
print("jax", jax.__version__, "numpy", np.__version__)
want = (np.repeat(image, 2, axis=1) * ends).sum(axis=(0, 3)).reshape(2, 1, 1)  # the weights are ones
got = np.asarray(jax.jit(gradient)(scale))
if not np.allclose(want, got):
    print("BUG:", got.ravel().tolist(), "instead of", want.ravel().tolist())
    sys.exit(1)
print("the bug does not show:", got.ravel().tolist())
