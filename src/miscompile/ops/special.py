"""Special values: NaN, infinities, zeros of either sign, the ends of every type, and the edges of operators.

Operators state what is specified about them (`OpSpec.special`); this module has the statements that several share, and
the elements from which the check of special values draws.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import ml_dtypes
import numpy as np

from miscompile.base.dtypes import DTYPES, is_float
from miscompile.core.tensor import Array
from miscompile.ops.spec import SpecialValues

IEEE = SpecialValues()
"""Elements are moved, compared or computed as IEEE 754 says, to the bit."""

ROUNDED = SpecialValues(frozenset({"rounding"}))
"""As IEEE 754 says, but for the last places."""

FUNCTION = SpecialValues(frozenset({"rounding", "zero"}))
"""A function whose results on special values are those of annex F of the C standard."""

ORDER = SpecialValues(frozenset({"nan", "zero"}))
"""Maximum and minimum: IEEE 754 defines them with NaN and without, and lets either zero be the larger one."""

STEPS = SpecialValues(frozenset({"rounding", "zero", "overflow"}))
"""Results of several steps."""

SUMS = SpecialValues(STEPS.freedoms | {"order"})
"""Sums of several terms, in any order."""

CONVERSION = SpecialValues(frozenset({"conversion"}))
"""A conversion to another type."""


def native(dtype: str) -> "np.dtype[np.generic]":
    """Return the numpy type whose arithmetic is that of `dtype`; that of bfloat16 comes from ml_dtypes."""
    return np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else DTYPES[dtype].storage


@cache
def least_normal(dtype: str) -> float:
    """Return the least positive number of a float type that is no subnormal one."""
    return float(ml_dtypes.finfo(native(dtype)).tiny)


@cache
def least(dtype: str) -> float:
    """Return the least positive number of a float type, a subnormal one."""
    return float(ml_dtypes.finfo(native(dtype)).smallest_subnormal)


def around(given: SpecialValues, edges: Callable[[str], tuple[float, ...]]) -> SpecialValues:
    """Return the statement `given` with the edges of an operator."""
    return replace(given, edges=edges)


def UNIT(_: str) -> tuple[float, ...]:  # noqa: N802 - one of several named tables, all of them functions of the type
    """Zero and plus or minus one: the ends of the domains of logarithms and of inverse functions."""
    return (0.0, 1.0, -1.0)


def EXPONENTIAL(dtype: str) -> tuple[float, ...]:  # noqa: N802
    """Where exp(x) overflows, becomes subnormal, and becomes zero, and the same with -x."""
    ends = (math.log(DTYPES[dtype].high), math.log(least_normal(dtype)), math.log(least(dtype)))
    return (*ends, *(-end for end in ends), 1.1 * ends[0], -1.1 * ends[0])


def SQUARES(dtype: str) -> tuple[float, ...]:  # noqa: N802
    """Where x * x overflows, becomes subnormal, and becomes zero."""
    ends = (math.sqrt(DTYPES[dtype].high), math.sqrt(least_normal(dtype)), math.sqrt(least(dtype)))
    return (*ends, -ends[0], 4 * ends[0], ends[2] / 4)


def ARGUMENTS(dtype: str) -> tuple[float, ...]:  # noqa: N802
    """Where 1 / x overflows."""
    return (1 / DTYPES[dtype].high, -1 / DTYPES[dtype].high, 0.0)


def WHOLE(dtype: str) -> tuple[float, ...]:  # noqa: N802
    """Halves, and the numbers from which on every float is an integer."""
    return (0.5, -0.5, 1.5, 2.5, 2.0 ** (DTYPES[dtype].digits - 1), -(2.0 ** (DTYPES[dtype].digits - 2)))


def LIMITS(dtype: str) -> tuple[float, ...]:  # noqa: N802
    """The ends of the integer types and of the narrower float types."""
    ends = [float(end) for bits in (8, 16, 32) for end in (2 ** (bits - 1), -(2 ** (bits - 1)), 2**bits)]
    high = DTYPES[dtype].high
    return tuple(end for end in (*ends, 65504.0, 65520.0, DTYPES["float32"].high) if end <= high)


@cache
def special_elements(dtype: str, edges: tuple[Callable[[str], tuple[float, ...]], ...]) -> Array:
    """Return special elements of `dtype` in its storage type, each as often as it shall be drawn.

    For floats these are NaN with several payloads and signs, infinities, zeros, the ends of the normal and subnormal
    numbers, and the neighbours of `edges` on both sides; for integers the ends of the type.
    """
    info = DTYPES[dtype]
    if not is_float(dtype):
        whole = (0, 1) if dtype == "bool" else (0, 1, info.low, info.high, info.low + 1, info.high - 1)
        # A double does not hold the ends of 64-bit types.
        return np.array([min(int(end), 2**info.digits - 1) for end in whole], object).astype(info.storage)
    kind = native(dtype)
    ends = [DTYPES[dtype].high, least_normal(dtype), least(dtype)]
    numbers = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, *ends, *(-end for end in ends)]
    close = np.array([point for edge in edges for point in edge(dtype)], np.float64)
    with np.errstate(all="ignore"):
        near = np.concatenate([close.astype(kind), *(_neighbours(close.astype(kind), step) for step in (1, -1))])
        below = _neighbours(np.array([least_normal(dtype)], kind), -1)  # the largest subnormal number
    return np.concatenate([_bits(np.array(numbers, kind)), _nans(dtype), _bits(below), _bits(near)])


def _bits(numbers: Array) -> Array:
    """Return the words of brain floats, and other numbers as they are."""
    return numbers.view(np.uint16) if numbers.dtype == ml_dtypes.bfloat16 else numbers


def _neighbours(numbers: Array, step: int) -> Array:
    """Return the next numbers away from zero, or with a `step` of -1 those toward zero."""
    words = numbers.view(f"i{numbers.itemsize}") + step
    return np.asarray(np.where(numbers == 0, numbers, words.view(numbers.dtype)))


def _nans(dtype: str) -> Array:
    """Return quiet NaNs with a payload, and with a sign."""
    bits, mantissa = DTYPES[dtype].bits, DTYPES[dtype].digits - 1
    quiet = ((1 << (bits - 1 - mantissa)) - 1 << mantissa) | 1 << (mantissa - 1)
    words = np.array([quiet | 5, quiet | 1 << (bits - 1)], f"u{bits // 8}")
    return words.view(DTYPES[dtype].storage)
