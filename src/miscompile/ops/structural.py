"""Structural operands and attributes: axes, sizes, pads and indices, written and read back in one way.

Samplers write axes negative or positive alike, and put structural operands through `Site.known`; bounds and guards read
them from `Operand.value`.
"""

import math
import random
from collections.abc import Iterable, Sequence

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.core.tensor import Array
from miscompile.graph.model import TensorType
from miscompile.ops.facts import Bounds, Facts
from miscompile.ops.spec import Call, Operand, Shape, Site

INDEX_TYPES = ("int64", "int32")


def vector(site: Site, values: Iterable[int], dtype: str = "int64") -> Operand:
    """Return a known one-dimensional operand of shape [number of values]."""
    return site.known(np.array(list(values), dtype), dtype)


def scalar(site: Site, value: int, dtype: str = "int64") -> Operand:
    """Return a known operand of rank 0."""
    return site.known(np.array(value, dtype), dtype)


def numbers(call: Call, index: int) -> tuple[int, ...] | None:
    """Return the elements of structural input `index` in row-major order; None when they are not known."""
    value = call.operand(index).value
    return None if value is None else integers_of(value)


def integers_of(value: Array) -> tuple[int, ...]:
    """Return the elements of an array of integers in row-major order, as Python's."""
    return tuple(value.ravel().tolist()) if value.dtype.kind in "iu" else tuple(map(int, value.ravel().tolist()))


def index_type(rng: random.Random) -> str:
    """Draw the element type of an index tensor: int64 more often than int32."""
    return "int64" if rng.random() < 0.7 else "int32"


def signed(rng: random.Random, axis: int, rank: int) -> int:
    """Write `axis` in [0, rank) as it is, or counted from the back."""
    return axis - rank if rng.random() < 0.4 else axis


def draw_axis(rng: random.Random, rank: int) -> int:
    """Draw an axis in [0, rank); `rank` is at least 1."""
    return int(rng.random() * rank)


def draw_axes(rng: random.Random, rank: int) -> list[int]:
    """Draw one to `rank` different axes in [0, rank), in any order."""
    return rng.sample(range(rank), 1 + int(rng.random() * rank))


def axis_of(call: Call, rank: int, default: int = 0) -> int:
    """Attribute `axis` of `call` counted from the front."""
    axis = call.integer("axis", default)
    return axis + rank if axis < 0 else axis


def indices(rng: random.Random, shape: Shape, size: int, dtype: str) -> Array:
    """Draw indices in [-size, size) (in half of the tensors: none negative) as an array of `shape`.

    An axis of size 0 has no index: `shape` must then be empty.
    """
    low = -size if rng.random() < 0.5 else 0
    return np.array(rng.choices(range(low, size), k=math.prod(shape)) if math.prod(shape) else [], dtype).reshape(shape)


def in_range(values: Array | None, size: int) -> bool:
    """Tell whether every index is known and lies in [-size, size)."""
    return values is not None and (values.size == 0 or (-size <= int(values.min()) and int(values.max()) < size))


def carried(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    """Bounds of outputs whose elements are elements of input 0."""
    return (kept(call.facts()),) * len(types)


def kept(facts: Facts) -> Bounds:
    """Bounds of a value whose elements are elements of an operand with `facts`."""
    return Bounds(facts.lo, facts.hi, facts.integral)


def hull(parts: Sequence[Facts]) -> Bounds:
    """Bounds of a value whose elements are elements of any of the operands."""
    return Bounds(min(p.lo for p in parts), max(p.hi for p in parts), all(p.integral for p in parts))


def with_zero(bounds: Bounds) -> Bounds:
    """Bounds of a value that also holds zeros."""
    return Bounds(min(bounds.lo, 0), max(bounds.hi, 0), bounds.integral, bounds.partial)


def accumulated(bounds: Bounds, terms: int, dtype: str) -> Bounds:
    """Widen the bounds of a result of `terms` roundings one after the other, unless no rounding can happen.

    Adding n floats one by one errs by up to n half-ulps of the sum of magnitudes, more than the few ulps that
    `settle` grants to a single operation.
    """
    info = DTYPES[dtype]
    magnitude = max(abs(bounds.lo), abs(bounds.hi))
    if info.kind != "float" or terms <= 1 or (bounds.integral and max(magnitude, bounds.partial) <= 2.0**info.digits):
        return bounds
    slack = terms * info.eps * magnitude
    return Bounds(bounds.lo - slack, bounds.hi + slack, bounds.integral, bounds.partial)
