"""Facts: what is known of a value's elements before anything runs, and how facts decide exactness.

Intervals do here what constraint solvers do elsewhere: operands are chosen, or guarded, so that domain errors,
overflow and undefined behaviour cannot happen. The exact flag is what the zero-tolerance comparison stands on:
integers small enough that every order of evaluation and every fusion gives the same bits.
"""

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Array, Tensor


class Exactness(Enum):
    """How an operator's result depends on the way it is computed.

    MOVES: elements are only moved, compared, or combined by operations without rounding (Transpose, Max, Where,
    Abs, integer bit operations): bits follow from bits. INTEGER: exact when operands and partial results are
    integers that the type holds (Add, MatMul, Conv, ReduceSum). ROUNDS: rounds even on integers (Div, ReduceMean).
    TRANSCENDENTAL: no two libraries agree to the last bit (Exp, Erf). INDEX: discontinuous, but exact when the
    operands are (Floor, ArgMax, Less, Cast to integer).
    """

    MOVES = "moves"
    INTEGER = "exact on integers"
    ROUNDS = "rounds"
    TRANSCENDENTAL = "transcendental"
    INDEX = "index-like"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a spec says of one output: every element lies in [lo, hi]; `integral`: each is an integer.

    `partial` is the largest magnitude of a partial result, where that exceeds the result's own (0: it does not).
    """

    lo: float
    hi: float
    integral: bool = False
    partial: float = 0.0


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a value: bounds, integrality, and whether all correct implementations agree on its bits."""

    lo: float
    hi: float
    integral: bool = False
    exact: bool = False

    @property
    def magnitude(self) -> float:
        """Largest absolute value that an element can have."""
        return max(abs(self.lo), abs(self.hi))

    def inside(self, lo: float, hi: float) -> bool:
        """Tell whether every element lies in [lo, hi]."""
        return lo <= self.lo and self.hi <= hi


TRUTH = Facts(0, 1, integral=True, exact=True)

LIMITS = {"float16": 1000.0, "bfloat16": 1e6, "float32": 1e6, "float64": 1e9, "int32": 2.0**30, "int64": 2.0**52}
"""Largest magnitude that the generator lets a value reach: far from overflow, and from signed wraparound."""

_WRAPPING = frozenset({"int8", "int16", "uint8", "uint16", "uint32", "uint64"})


def measure(value: Array | Tensor) -> Facts:
    """Return the facts of a known constant. NaN and infinities give infinite bounds."""
    numbers = value.numbers() if isinstance(value, Tensor) else value
    if numbers.size == 0 or numbers.dtype.kind in "OUSc":
        return Facts(0, 0, integral=True, exact=True)
    lo, hi = float(numbers.min()), float(numbers.max())
    if not (math.isfinite(lo) and math.isfinite(hi)):
        return Facts(-math.inf, math.inf, integral=False, exact=True)
    integral = numbers.dtype.kind != "f" or bool((np.floor(numbers) == numbers).all())
    return Facts(lo, hi, integral, exact=True)


def settle(dtype: str, bounds: Bounds, exactness: Exactness, inputs: tuple[Facts, ...]) -> Facts:
    """Turn the bounds that a spec computed into the facts of an output of type `dtype`.

    Widens float intervals by a few ulps, wraps integer types whose wraparound is defined, decides exactness.
    Raises RejectedDraft when the value could overflow a float or a signed 32- or 64-bit integer.
    """
    info = DTYPES[dtype]
    known = all(facts.exact for facts in inputs)
    if info.kind == "bool":
        return Facts(0, 1, integral=True, exact=known and _keeps(exactness))
    if info.kind != "float":
        return _settle_integer(dtype, bounds, exact=known and _keeps(exactness))
    magnitude = max(abs(bounds.lo), abs(bounds.hi), bounds.partial)
    if not magnitude <= LIMITS.get(dtype, info.high / 4):
        raise RejectedDraft(f"a {dtype} value could reach {magnitude:g}")
    whole = bounds.integral and all(facts.integral for facts in inputs) and magnitude <= 2.0**info.digits
    exact = known and (exactness in (Exactness.MOVES, Exactness.INDEX) or (exactness is Exactness.INTEGER and whole))
    if bounds.integral and magnitude <= 2.0**info.digits:
        return Facts(bounds.lo, bounds.hi, integral=True, exact=exact)
    if exactness is Exactness.MOVES:
        return Facts(bounds.lo, bounds.hi, bounds.integral, exact=exact)
    slack = 8 * info.eps
    subnormal = 2.0**-14 if dtype == "float16" else 1e-30  # such results lose digits, or are flushed to zero
    return Facts(
        bounds.lo - abs(bounds.lo) * slack - subnormal,
        bounds.hi + abs(bounds.hi) * slack + subnormal,
        integral=False,
        exact=exact,
    )


def _keeps(exactness: Exactness) -> bool:
    return exactness in (Exactness.MOVES, Exactness.INDEX, Exactness.INTEGER)


def _settle_integer(dtype: str, bounds: Bounds, *, exact: bool) -> Facts:
    info = DTYPES[dtype]
    lo, hi = math.floor(bounds.lo), math.ceil(bounds.hi)
    if dtype in _WRAPPING:
        if lo < info.low or hi > info.high:
            lo, hi = int(info.low), int(info.high)
    elif max(abs(lo), abs(hi), bounds.partial) > LIMITS[dtype]:
        raise RejectedDraft(f"a {dtype} value could reach {max(abs(lo), abs(hi)):g}")
    return Facts(lo, hi, integral=True, exact=exact)
