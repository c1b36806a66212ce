"""Noise on the results of single operations, by which adapters measure how rounding moves a derivative.

For programs `oracles/instrumentation.py` instruments the ONNX model, by the same steps. The operations of a derivative
stand in no model: the derivative of a hyperbolic tangent is one minus the square of its rounded result, which no noise
on the operands of Tanh can show. So the adapter puts the noise on the results of the operations that its library
executes, except those that select or move numbers, and on inputs and constants.

Derivatives jump where an operator has a corner, and mostly at zero, where noise that multiplies changes nothing. The
noise therefore also adds a number that is far below the last place of most numbers but zero (in float16, of those
above 0.002).
"""

import numpy as np
from numpy.typing import NDArray

ULPS = 8

EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
"""The distance from 1 to the next number, by the types that have derivatives."""

SHIFTS = {"float16": 2.0**-21, "bfloat16": 2.0**-100, "float32": 2.0**-100, "float64": 2.0**-700}
"""What is added or subtracted, by type."""

_SHARES = (1 / 16, 1 / 2, 1 / 2, 15 / 16)
"""The shares of numbers that move up, as in `oracles/montecarlo.py`."""


def signs(size: int, number: int, place: int = 0) -> NDArray[np.float64]:
    """Return the directions in which a noise moves `size` numbers: none for 0, up for 1, down for 2, else drawn.

    `place` tells the values apart that one run moves.
    """
    if number < 3:
        return np.full(size, (0.0, 1.0, -1.0)[number])
    drawn = np.random.default_rng([number, place]).random(size)
    return np.where(drawn < _SHARES[number % len(_SHARES)], 1.0, -1.0)
