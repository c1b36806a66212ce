"""Evaluation of obligations on floats: the domain on which both sides agree bit for bit.

The language's own kernels compute both sides. With one variable all float16 and all bfloat16 numbers are tried, with
two all pairs of float8 (e5m2, which has infinities, NaN, signed zeros and subnormals, as the wider types have) and all
float16 numbers against special ones, with more the special float16 numbers in all combinations, or a sample of these.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, get_args

import ml_dtypes
import numpy as np

from miscompile.base.rng import array_stream
from miscompile.core.tensor import Array
from miscompile.transforms.rules.kinds import ELEMENTS
from miscompile.transforms.rules.proofs.elements import GENERIC, Element, Obligation
from miscompile.transforms.rules.terms import LANGUAGE, Symbol, evaluate

FloatDifference = Literal["signed zeros", "NaN", "infinities", "overflow", "subnormals", "rounding"]
"""Why two results differ: by the sign of a zero alone, for a NaN or an infinity among the operands, because a result is
not finite although the operands are, for subnormal numbers among the operands or results, or for none of these.
"""

EXCEPTIONS: tuple[FloatDifference, ...] = get_args(FloatDifference)

_FLOAT8: np.dtype[Any] = np.dtype(ml_dtypes.float8_e5m2)
_FLOAT16: np.dtype[Any] = np.dtype(np.float16)
_BFLOAT16 = ELEMENTS["bfloat16"]
_MOST_POINTS = 1 << 15
_DRAWN = 1 << 14
_FEW = 12
_SPECIAL = (
    0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 2.0, 65504.0, -65504.0, 2.0**-14, 2.0**-24, -(2.0**-24),
    0.1, -3.0, 1.0009765625, 0.5, -0.333, 7.0, 256.0, 1000.0, -40000.0, 3 * 2.0**-24, 0.75,
)  # fmt: skip
"""Zeros, infinities, NaN, the ends of the normal and the subnormal numbers, and some that sums and products round."""

_NARY = frozenset({"ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean"})


@dataclass(slots=True)
class Domain:
    """Where both sides agree: the number of `points` tried, those that differ by reason, and the formats."""

    points: int = 0
    differing: Counter[FloatDifference] = field(default_factory=Counter)
    formats: set[str] = field(default_factory=set)

    @property
    def exceptions(self) -> tuple[FloatDifference, ...]:
        """The reasons for which results differ, in the order of EXCEPTIONS."""
        return tuple(reason for reason in EXCEPTIONS if self.differing[reason])


def explore(stated: Obligation, domain: Domain) -> None:
    """Evaluate an obligation on floats, and add what is found to `domain`; where the left side is undefined, nothing.

    Its element type is open, or the types are those of a rule about casts, of which each has its own values.
    """
    casts = "Cast" in stated.operators
    for points in _typed_points(stated) if casts else _points(len(stated.variables), stated):
        left, right, defined = _sides(stated, points)
        domain.points += int(defined.sum())
        domain.formats.update(_formats(stated, points))
        differing = defined & ~_same(left, right)
        if differing.any():
            domain.differing.update(_reasons(points.arrays(differing), left[differing], right[differing]))


@dataclass(frozen=True, slots=True)
class Points:
    """Values for the variables of an obligation: an array each, of the float type `dtype` or of truth values."""

    dtype: np.dtype[Any]
    values: tuple[Array, ...]

    def arrays(self, chosen: Array) -> tuple[Array, ...]:
        """Return the values at some of the points."""
        return tuple([value[chosen] for value in self.values])


_SHORT = frozenset({"bool", "int8", "uint8", "int16", "uint16", "float16", "bfloat16"})


def _typed_points(stated: Obligation) -> Iterator[Points]:
    """Yield values of the variables' own types: all of them for one short type, otherwise special and drawn ones."""
    sorts = [element.sort for element in stated.variables]
    if len(sorts) == 1 and sorts[0] in _SHORT:
        yield Points(_FLOAT16, (_TRUTH if sorts[0] == "bool" else every(ELEMENTS[sorts[0]]),))
        return
    rng = array_stream(0, "typed points", *sorts)
    yield Points(_FLOAT16, tuple([_drawn(sort, rng) for sort in sorts]))


def _drawn(sort: str, rng: np.random.Generator) -> Array:
    if sort == "bool":
        return rng.integers(0, 2, _DRAWN).astype(bool)
    dtype = ELEMENTS[sort]
    words = rng.integers(0, 256, _DRAWN * dtype.itemsize, np.uint8).view(dtype)
    with np.errstate(all="ignore"):
        special = rng.choice(np.array([v for v in _SPECIAL if dtype.kind not in "iu" or math.isfinite(v)]), _DRAWN)
        return np.asarray(np.where(rng.random(_DRAWN) < 0.3, special.astype(dtype), words))


def _points(count: int, stated: Obligation) -> Iterator[Points]:
    truths = [element.sort == "bool" for element in stated.variables]
    if count == 0:
        yield Points(_FLOAT16, ())
    elif count == 1 or (count == 2 and any(truths)):
        for dtype in (_FLOAT16, _BFLOAT16):
            yield _grid(dtype, [_TRUTH if truth else every(dtype) for truth in truths])
    elif count == 2:
        yield _grid(_FLOAT8, [every(_FLOAT8)] * 2)
        few = _special(_FLOAT16)[:_FEW]
        for order in ([every(_FLOAT16), few], [few, every(_FLOAT16)]):
            yield _grid(_FLOAT16, order)
    else:
        each = _special(_FLOAT16)[: max(4, int(_MOST_POINTS ** (1 / count)))]
        axes = [_TRUTH if truth else each for truth in truths]
        if math.prod(len(axis) for axis in axes) <= 2 * _MOST_POINTS:
            yield _grid(_FLOAT16, axes)
        else:
            rng = array_stream(0, "points", count)
            wide = [_TRUTH if truth else _special(_FLOAT16) for truth in truths]
            yield Points(_FLOAT16, tuple([rng.choice(axis, _MOST_POINTS // 4) for axis in wide]))


_TRUTH = np.array([False, True])


def _grid(dtype: np.dtype[Any], axes: list[Array]) -> Points:
    places = np.meshgrid(*[np.arange(len(axis)) for axis in axes], indexing="ij")
    return Points(dtype, tuple([axis[place.reshape(-1)] for axis, place in zip(axes, places, strict=True)]))


@cache
def every(dtype: np.dtype[Any]) -> Array:
    """Return all values of a float type of 8 or 16 bits."""
    words = np.arange(1 << (8 * dtype.itemsize), dtype=np.uint8 if dtype.itemsize == 1 else np.uint16)
    return words.view(dtype)


@cache
def _special(dtype: np.dtype[Any]) -> Array:
    return np.array(_SPECIAL).astype(dtype)


def _formats(stated: Obligation, points: Points) -> set[str]:
    """Return the names of the float types of the variables."""
    own = {_FLOAT8: "float8e5m2", _FLOAT16: "float16"}.get(points.dtype, "bfloat16")
    named = {own if element.sort == GENERIC else element.sort for element in stated.variables}
    return {name for name in named if "float" in name}


def _sides(stated: Obligation, points: Points) -> tuple[Array, Array, Array]:
    """Return the values of both sides at all points, and where the left side is defined."""
    size = len(points.values[0]) if points.values else 1
    found = values_of_elements(stated, points, size)
    defined = np.ones(size, bool)
    for place in _below(stated, stated.left):
        element = stated.elements[place]
        if element.op == "Cast":
            defined &= _converts(found[element.children[0]], element.sort)
    left, right = found[stated.left], found[stated.right]
    return np.broadcast_to(left, (size,)), np.broadcast_to(right, (size,)), defined


def _below(stated: Obligation, root: int) -> set[int]:
    found, pending = {root}, [root]
    while pending:
        new = set(stated.elements[pending.pop()].children) - found
        found |= new
        pending.extend(new)
    return found


def _converts(values: Array, target: str) -> Array:
    """Tell where a Cast is defined: a float becomes an integer only within the range of the integers."""
    if values.dtype.kind in "biu" or ELEMENTS[target].kind not in "iu":
        return np.ones(values.shape, bool)
    info = np.iinfo(ELEMENTS[target])
    whole = np.trunc(values.astype(np.float64))
    return np.asarray((whole >= float(info.min)) & (whole < float(info.max) + 1))


def values_of_elements(stated: Obligation, points: Points, size: int) -> list[Array]:
    """Return the values of all elements at all points, as the language's kernels compute them."""
    found: list[Array] = []
    with np.errstate(all="ignore"):
        for element in stated.elements:
            found.append(_value(element, [found[child] for child in element.children], points, size))
    return found


def _value(element: Element, operands: list[Array], points: Points, size: int) -> Array:
    dtype = points.dtype if element.sort == GENERIC else ELEMENTS[element.sort]
    if element.op == "Variable":
        number = element.parameters[0]
        assert isinstance(number, int)
        return points.values[number]
    if element.op == "Constant":
        return np.full((size,), element.parameters[0], dtype)
    if element.op == "Cast":
        return evaluate(Symbol("Cast", (element.sort,)), tuple(operands))
    if element.op in _NARY:
        if not operands:
            return np.zeros((size,), dtype)
        return evaluate(Symbol(element.op, ((0,), 0)), (np.stack(operands),))
    if element.op in ("ArgMax", "ArgMin"):
        return evaluate(Symbol(element.op, (0, 0, element.parameters[0])), (np.stack(operands),))
    if element.op == "Softmax":
        place = element.parameters[0]
        assert isinstance(place, int)
        return np.asarray(evaluate(Symbol("Softmax", (0,)), (np.stack(operands),))[place])
    return np.asarray(LANGUAGE[element.op].evaluate(tuple(operands), element.parameters, 0))


def _same(left: Array, right: Array) -> Array:
    """Tell where two results are equal bit for bit, but for the payload of a NaN."""
    if left.dtype.kind in "biu":
        return np.asarray(left == right)
    with np.errstate(all="ignore"):
        nans = np.isnan(left) & np.isnan(right)
        return np.asarray(nans | ((left == right) & (np.signbit(left) == np.signbit(right))))


def _reasons(operands: tuple[Array, ...], left: Array, right: Array) -> Counter[FloatDifference]:
    """Count the points by the reason why their results differ; the first of EXCEPTIONS that fits."""
    wide = [value.astype(np.float64) for value in operands if value.dtype.kind != "b"]
    results = [left.astype(np.float64), right.astype(np.float64)]
    least = float(ml_dtypes.finfo(left.dtype).smallest_normal) if left.dtype.kind not in "biu" else 0.0
    none = np.zeros(left.shape, bool)
    with np.errstate(all="ignore"):
        cases: tuple[Array, ...] = (
            results[0] == results[1],
            np.any([np.isnan(value) for value in wide] or [none], axis=0),
            np.any([np.isinf(value) for value in wide] or [none], axis=0),
            np.any([~np.isfinite(value) for value in results], axis=0),
            np.any([(value != 0) & (np.abs(value) < least) for value in (*wide, *results)], axis=0),
        )
    found: Counter[FloatDifference] = Counter()
    left_over = ~none
    for reason, case in zip(EXCEPTIONS, cases, strict=False):
        found[reason] = int((left_over & case).sum())
        left_over = left_over & ~case
    found["rounding"] = int(left_over.sum())
    return found
