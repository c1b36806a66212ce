"""Directions of derivatives: numbers that a seed draws; standalone scripts contain what they need of this module."""

import numpy as np
from numpy.typing import NDArray

FLOATS = ("float16", "bfloat16", "float32", "float64")
"""Types of values that have derivatives."""


def direction(shape: tuple[int, ...], seed: int, place: int) -> NDArray[np.float64]:
    """Return numbers of either sign with magnitudes between 0.5 and 2, for the value at `place` among several."""
    numbers = np.random.default_rng([seed, place])
    return np.asarray(numbers.uniform(0.5, 2.0, shape) * numbers.choice([-1.0, 1.0], shape))
