"""Weights that are the same on every back end.

Back ends of Keras draw different numbers from one seed, so a layer built on two of them would differ in its weights
before any compiler has touched it. Initializers that draw at random therefore draw from numpy here, evenly, and
narrower the more elements are summed; all others are Keras' own.
"""

import math
from typing import Any

import numpy as np

RANDOM = ("RandomNormal", "TruncatedNormal", "RandomUniform", "VarianceScaling", "Orthogonal")
"""Initializers that draw at random; all others that do are subclasses of these."""


class _Source:
    """The generator that weights are drawn from."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)


_SOURCE = _Source()


def begin() -> None:
    """Begin a program: its weights are drawn in the order of their making, the same in every process."""
    _SOURCE.rng = np.random.default_rng(0)


def install() -> None:
    """Have initializers draw from numpy, for the rest of the process."""
    import keras

    for name in RANDOM:
        getattr(keras.initializers, name).__call__ = _drawn


def _drawn(self: Any, shape: Any, dtype: Any = None) -> Any:  # noqa: ANN401 - a method of Keras'
    import keras

    bound = 1 / math.sqrt(max(1, math.prod(shape[:-1])))
    values = _SOURCE.rng.uniform(-bound, bound, tuple(shape)).astype(np.float32)
    return keras.ops.convert_to_tensor(values, dtype=dtype or keras.config.floatx())
