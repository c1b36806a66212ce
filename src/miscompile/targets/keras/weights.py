"""Weights that are the same on every back end.

Back ends of Keras draw different numbers from one seed, so the weights of a layer would differ between two of them
before any compiler runs. Random initializers are therefore replaced by uniform draws from numpy, whose range narrows
with the number of summed elements. All others are Keras' own.
"""

import math
from typing import Any

import numpy as np

RANDOM = ("RandomNormal", "TruncatedNormal", "RandomUniform", "VarianceScaling", "Orthogonal")
"""Base classes of all random initializers."""


class _Source:
    """The generator from which weights are drawn."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)


_SOURCE = _Source()


def begin() -> None:
    """Reset the generator for a program, so that its weights are the same in every process."""
    _SOURCE.rng = np.random.default_rng(0)


def install() -> None:
    """Make initializers draw from numpy, for the rest of the process."""
    import keras

    for name in RANDOM:
        getattr(keras.initializers, name).__call__ = _drawn


def _drawn(self: Any, shape: Any, dtype: Any = None) -> Any:  # noqa: ANN401 - a method of Keras'
    import keras

    bound = 1 / math.sqrt(max(1, math.prod(shape[:-1])))
    values = _SOURCE.rng.uniform(-bound, bound, tuple(shape)).astype(np.float32)
    return keras.ops.convert_to_tensor(values, dtype=dtype or keras.config.floatx())
