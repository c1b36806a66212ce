"""Elements for inputs and constants: ranges, and fast drawing from one pool made in advance.

Drawing a fresh array costs more than all other work for an input, so every array is a scaled slice of a fixed pool of
uniform numbers; only the offset comes from the case's random stream.
"""

import math
import random
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from miscompile.base.dtypes import DTYPES, PLAIN, SMALL, SMALL_FLOATS
from miscompile.base.errors import RejectedDraft
from miscompile.base.rng import array_stream
from miscompile.core.small import encoded, table
from miscompile.core.tensor import Array, to_bfloat16
from miscompile.ops.facts import Facts

_POOL_SIZE = 1 << 13
_MARGIN = 0.01
_POOL = array_stream(0, "values").random(2 * _POOL_SIZE)


@dataclass(frozen=True, slots=True)
class Style:
    """How elements are chosen in one case.

    `integral`: floats hold small integers only, so that additions and products stay exact; `full`: 8- and 16-bit and
    unsigned integers run over their whole range, where wraparound is defined and bugs are frequent.
    """

    integral: bool = False
    full: bool = False
    span: float = 3.0


class Range(NamedTuple):
    """Closed range of elements; `integral`: integers only."""

    lo: float
    hi: float
    integral: bool

    def facts(self) -> Facts:
        """Facts of an input or constant drawn from this range."""
        return _facts_of(self)


@lru_cache(1 << 10)
def _facts_of(span: Range) -> Facts:
    return Facts(span.lo, span.hi, span.integral, exact=True)


def choose_range(dtype: str, style: Style, within: tuple[float, float] | None = None) -> Range:
    """Return the range for a new value of `dtype`: the style's, moved into `within` if that is given.

    Raises RejectedDraft when `within` holds no element of the type.
    """
    usual = _usual_range(dtype, style.integral, style.full, style.span)
    if within is None or dtype == "bool":
        return usual
    info = DTYPES[dtype]
    lo, hi, integral = usual
    span = hi - lo
    low, high = max(within[0], info.low), min(within[1], info.high)
    if low > hi:
        lo, hi = low, min(high, low + span)
    elif high < lo:
        lo, hi = max(low, high - span), high
    else:
        lo, hi = max(lo, low), min(hi, high)
    return _whole(dtype, lo, hi) if integral else _within(dtype, lo, hi)


def _within(dtype: str, lo: float, hi: float) -> Range:
    """Return the range of floats whose elements, rounded to `dtype`, stay in [lo, hi].

    Neighbouring small floats are so far apart that the ends must be floats of the type themselves.
    """
    if dtype in SMALL_FLOATS:
        numbers = table(dtype)
        inside = numbers[(numbers >= lo) & (numbers <= hi)]
        if not inside.size:
            raise RejectedDraft(f"no {dtype} lies in [{lo:g}, {hi:g}]")
        return Range(float(inside.min()), float(inside.max()), integral=False)
    slack = max(abs(lo), abs(hi)) * DTYPES[dtype].eps
    if _MARGIN * (hi - lo) < slack < (hi - lo) / 4:
        lo, hi = lo + slack, hi - slack
    return Range(lo, hi, integral=False)


@lru_cache(1 << 10)
def _usual_range(dtype: str, integral: bool, full: bool, span: float) -> Range:
    if dtype == "bool":
        return Range(0, 1, integral=True)
    return Range(*_usual(dtype, Style(integral, full, span)))


def _usual(dtype: str, style: Style) -> tuple[float, float, bool]:
    info = DTYPES[dtype]
    if info.kind == "float":
        span = min(style.span, info.high)
        return (-4, 4, True) if style.integral else (-span, span, False)
    if style.full and (info.bits <= 16 or info.kind == "uint"):
        return (info.low, min(info.high, 2.0**52), True)
    return (max(info.low, -5), min(info.high, 5), True)


def _whole(dtype: str, lo: float, hi: float) -> Range:
    low, high = math.ceil(lo), math.floor(hi)
    if low <= high:
        return Range(low, high, integral=True)
    if DTYPES[dtype].kind != "float":
        raise RejectedDraft(f"no {dtype} lies in [{lo:g}, {hi:g}]")
    return Range(lo, hi, integral=False)


def draw(rng: random.Random, dtype: str, shape: tuple[int, ...], span: Range) -> Array:
    """Draw elements of `span` in the storage type of `dtype`. The array may be a view and must not be written to.

    One element in some arrays is zero, because edges matter.
    """
    count = math.prod(shape)
    offset = int(rng.random() * _POOL_SIZE)
    pool = _POOLS.get((dtype, span)) or _pool(dtype, span)
    if pool and count <= _POOL_SIZE:
        numbers = pool[0][offset : offset + count]
    else:
        base = _POOL[offset : offset + count] if count <= _POOL_SIZE else np.resize(_POOL, count)
        numbers = _stored(dtype, _scaled(base, span) if dtype != "bool" else base)
    if not span.integral and count and span.lo < 0 < span.hi and rng.random() < 0.2:
        numbers = numbers.copy()
        numbers[0] = 0
    return numbers.reshape(shape)


def _scaled(base: Array, span: Range) -> Array:
    """Bring uniform numbers in [0, 1) into `span`; floats keep a margin that exceeds the rounding to the type."""
    if span.integral:
        return np.minimum(np.floor(base * (span.hi - span.lo + 1)) + span.lo, span.hi)
    margin = (span.hi - span.lo) * _MARGIN
    return base * (span.hi - span.lo - 2 * margin) + (span.lo + margin)


def _stored(dtype: str, numbers: Array) -> Array:
    if dtype == "bool":
        return numbers < 0.5
    if dtype in SMALL:
        return encoded(numbers, dtype)
    return to_bfloat16(numbers) if dtype == "bfloat16" else numbers.astype(DTYPES[dtype].storage)


_COMMON = frozenset(
    [(0, 1)]
    + [
        usual[:2]
        for style in (Style(), Style(integral=True), Style(full=True))
        for dtype in PLAIN
        if dtype != "bool"
        for usual in [_usual(dtype, style)]
    ]
)
"""Ends of the most frequent ranges: their pools are converted once, and not for every array."""


_POOLS: dict[tuple[str, Range], tuple[Array]] = {}


def _pool(dtype: str, span: Range) -> tuple[Array] | None:
    """Return the pool of a common range, made at the first request; None for any other range."""
    if (span.lo, span.hi) not in _COMMON:
        return None
    pool = _stored(dtype, _scaled(_POOL, span) if dtype != "bool" else _POOL)
    pool.flags.writeable = False  # many tensors are views of it
    kept = _POOLS[dtype, span] = (pool,)
    return kept
