"""Elements for inputs and constants: ranges, and fast drawing from one pool made in advance.

Drawing a fresh array costs more than everything else that is done for an input, so every array is a scaled slice of
a fixed pool of uniform numbers; only the offset comes from the case's random stream.
"""

import math
import random
from dataclasses import dataclass

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import RejectedDraft
from miscompile.base.rng import array_stream
from miscompile.core.tensor import Array, to_bfloat16
from miscompile.ops.facts import Facts

_POOL_SIZE = 1 << 15
_POOL = array_stream(0, "values").random(2 * _POOL_SIZE)


@dataclass(frozen=True, slots=True)
class Style:
    """How elements are chosen in one case.

    `integral`: floats hold small integers only, so that additions and products stay exact; `full`: 8- and 16-bit
    and unsigned integers run over their whole range, where wraparound is defined and bugs hide.
    """

    integral: bool = False
    full: bool = False
    span: float = 3.0


@dataclass(frozen=True, slots=True)
class Range:
    """Closed range of elements; `integral`: integers only."""

    lo: float
    hi: float
    integral: bool

    def facts(self) -> Facts:
        """Facts of an input or constant drawn from this range."""
        return Facts(self.lo, self.hi, self.integral, exact=True)


def choose_range(dtype: str, style: Style, within: tuple[float, float] | None = None) -> Range:
    """Return the range for a new value of `dtype`: the style's, moved into `within` if that is given.

    Raises RejectedDraft when `within` holds no element of the type.
    """
    info = DTYPES[dtype]
    if info.kind == "bool":
        return Range(0, 1, integral=True)
    lo, hi, integral = _usual(dtype, style)
    if within is None:
        return Range(lo, hi, integral)
    span = hi - lo
    low, high = max(within[0], info.low), min(within[1], info.high)
    if low > hi:
        lo, hi = low, min(high, low + span)
    elif high < lo:
        lo, hi = max(low, high - span), high
    else:
        lo, hi = max(lo, low), min(hi, high)
    return _whole(dtype, lo, hi) if integral else Range(lo, hi, integral=False)


def _usual(dtype: str, style: Style) -> tuple[float, float, bool]:
    info = DTYPES[dtype]
    if info.kind == "float":
        return (-4, 4, True) if style.integral else (-style.span, style.span, False)
    if style.full and (info.bits <= 16 or info.kind == "uint"):
        return (info.low, min(info.high, 2.0**52), True)
    return (0 if info.kind == "uint" else -5, 5, True)


def _whole(dtype: str, lo: float, hi: float) -> Range:
    low, high = math.ceil(lo), math.floor(hi)
    if low <= high:
        return Range(low, high, integral=True)
    if DTYPES[dtype].kind != "float":
        raise RejectedDraft(f"no {dtype} lies in [{lo:g}, {hi:g}]")
    return Range(lo, hi, integral=False)


def draw(rng: random.Random, dtype: str, shape: tuple[int, ...], span: Range) -> Array:
    """Draw elements of `span` as a new array in the storage type of `dtype`.

    One element in some arrays is zero, and one the range's end, because edges matter.
    """
    count = math.prod(shape)
    offset = int(rng.random() * _POOL_SIZE)
    base = _POOL[offset : offset + count] if count <= _POOL_SIZE else np.resize(_POOL, count)
    if dtype == "bool":
        return (base < 0.5).reshape(shape)
    if span.integral:
        numbers = np.floor(base * (span.hi - span.lo + 1)) + span.lo
        np.minimum(numbers, span.hi, out=numbers)
    else:
        margin = (span.hi - span.lo) * 0.01
        numbers = base * (span.hi - span.lo - 2 * margin) + (span.lo + margin)
        if count and span.lo < 0 < span.hi and rng.random() < 0.2:
            numbers[0] = 0.0
    numbers = numbers.reshape(shape)
    if dtype == "bfloat16":
        return to_bfloat16(numbers)
    return numbers.astype(DTYPES[dtype].storage)
