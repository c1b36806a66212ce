"""Facts: static knowledge of a value's elements (interval, integrality, exactness), and how exactness follows from it.

Intervals replace a constraint solver: the generator chooses operands, or guards them, so that domain errors, overflow
and undefined behaviour cannot happen. The comparison with zero tolerance relies on the exact flag: it marks integers so
small that every order of evaluation and every fusion gives the same bits.

Bounds and facts, like operands and calls, are named tuples because dozens are made for every graph, and a frozen
dataclass takes four times as long to make.
"""

import math
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from miscompile.base.dtypes import DTYPES, SMALL_FLOATS, SMALL_INTEGERS
from miscompile.base.errors import RejectedDraft
from miscompile.core.small import smallest
from miscompile.core.tensor import Array, Tensor

Span = tuple[float, float]
"""The least and the largest value of the elements of a tensor, both included."""


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


class Bounds(NamedTuple):
    """A spec's claim about one output: every element is in [lo, hi]; `integral`: each is an integer.

    `partial` is the largest magnitude of a partial result, where that exceeds the result's own (0: it does not).
    """

    lo: float
    hi: float
    integral: bool = False
    partial: float = 0.0


class Facts(NamedTuple):
    """Static facts of a value: bounds, integrality, and whether all correct implementations agree on its bits."""

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

_WRAPPING = frozenset({"int8", "int16", "uint8", "uint16", "uint32", "uint64", *SMALL_INTEGERS})


def measure(value: Array | Tensor) -> Facts:
    """Return the facts of a known constant. NaN and infinities give infinite bounds."""
    numbers = value.numbers() if isinstance(value, Tensor) else value
    size, kind = numbers.size, numbers.dtype.kind
    if size == 0 or kind in "OUSc":
        return _NOTHING if size == 0 else _ANYTHING
    if size <= _FEW:  # Python is faster than numpy on the few elements of most constants
        elements = numbers.ravel().tolist()
        lo, hi = float(min(elements)), float(max(elements))
        finite = kind != "f" or all(map(math.isfinite, elements))
        integral = kind != "f" or (finite and all(map(float.is_integer, elements)))
    else:
        lo, hi = float(numbers.min()), float(numbers.max())
        finite = math.isfinite(lo) and math.isfinite(hi)
        integral = kind != "f" or bool((np.floor(numbers) == numbers).all())
    return Facts(lo, hi, integral, exact=True) if finite else Facts(-math.inf, math.inf, integral=False, exact=True)


_FEW = 16
_NOTHING = Facts(0, 0, integral=True, exact=True)
_ANYTHING = Facts(-math.inf, math.inf, integral=False, exact=True)
"""The facts of strings and complex numbers, of which only exactness is claimed."""


@dataclass(frozen=True, slots=True)
class _Format:
    """Parameters of a float type for `settle`: largest admitted magnitude, largest exact integer, and two slacks.

    `slack` is relative. Results below `subnormal` lose digits, or are flushed to zero.
    """

    limit: float
    whole: float
    slack: float
    subnormal: float


_FORMATS = {
    name: _Format(
        LIMITS.get(name, info.high / 4), 2.0**info.digits, 8 * info.eps, 2.0**-14 if name == "float16" else 1e-30
    )
    for name, info in DTYPES.items()
    if info.kind == "float" and name not in SMALL_FLOATS
} | {
    # No operator computes in these types: a value was rounded once, and conversions saturate at the largest number.
    name: _Format(DTYPES[name].high, 2.0 ** DTYPES[name].digits, DTYPES[name].eps, float(smallest(name)))
    for name in SMALL_FLOATS
}


def settle(dtype: str, bounds: Bounds, exactness: Exactness, inputs: tuple[Facts, ...]) -> Facts:
    """Turn the bounds that a spec computed into the facts of an output of type `dtype`.

    Widens float intervals by a few ulps, wraps integer types whose wraparound is defined, decides exactness.
    Raises RejectedDraft when the value could overflow a float or a signed 32- or 64-bit integer.
    """
    known = True
    for facts in inputs:
        if not facts.exact:
            known = False
            break
    form = _FORMATS.get(dtype)
    if dtype == "bool":
        return Facts(0, 1, integral=True, exact=known and _keeps(exactness))
    if form is None:
        return _settle_integer(dtype, bounds, exact=known and _keeps(exactness))
    lo, hi = bounds.lo, bounds.hi
    magnitude = max(abs(lo), abs(hi), bounds.partial)
    if not magnitude <= form.limit:
        raise RejectedDraft(f"a {dtype} value could reach {magnitude:g}")
    small = bounds.integral and magnitude <= form.whole
    exact = known and (
        exactness is Exactness.MOVES
        or exactness is Exactness.INDEX
        or (exactness is Exactness.INTEGER and small and all(facts.integral for facts in inputs))
    )
    if small:
        return Facts(lo, hi, integral=True, exact=exact)
    if exactness is Exactness.MOVES:
        return Facts(lo, hi, bounds.integral, exact=exact)
    return Facts(
        lo - abs(lo) * form.slack - form.subnormal,
        hi + abs(hi) * form.slack + form.subnormal,
        integral=False,
        exact=exact,
    )


def _keeps(exactness: Exactness) -> bool:
    return exactness is Exactness.MOVES or exactness is Exactness.INDEX or exactness is Exactness.INTEGER


def _settle_integer(dtype: str, bounds: Bounds, *, exact: bool) -> Facts:
    info = DTYPES[dtype]
    lo, hi = math.floor(bounds.lo), math.ceil(bounds.hi)
    if dtype in _WRAPPING:
        if lo < info.low or hi > info.high:
            lo, hi = int(info.low), int(info.high)
    elif not max(abs(lo), abs(hi), bounds.partial) <= LIMITS.get(dtype, 0):
        raise RejectedDraft(f"a {dtype} value could reach {max(abs(lo), abs(hi)):g}")
    return Facts(lo, hi, integral=True, exact=exact)
