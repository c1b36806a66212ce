"""Operators whose output follows from shapes and constants alone: Shape, Size, ConstantOfShape, Range, EyeLike.

Sources: the operator pages of the ONNX documentation.
"""

import math
import random
from fractions import Fraction

import numpy as np

from miscompile.base.dtypes import DTYPES, PLAIN
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.attributes import attributes
from miscompile.graph.model import Node, TensorType
from miscompile.ops import output_shapes as rules
from miscompile.ops.facts import Bounds, Exactness, measure
from miscompile.ops.page_rules import scalars
from miscompile.ops.spec import Call, Operand, OpSpec, RunOperands, Shape, Site
from miscompile.ops.structural import kept, numbers, vector


def _shape(site: Site) -> Call:
    x = site.operand()
    if site.opset < 15 or site.rng.random() < 0.3:
        return Call("Shape", (x,))
    start, end = (site.rng.choice((None, site.rng.randint(-x.rank - 1, x.rank + 1))) for _ in range(2))
    return Call("Shape", (x,), attributes({"start": start, "end": end}))


def _shape_bounds(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    sizes = call.operand(0).shape or (0,)
    return (Bounds(min(sizes), max(sizes), integral=True),)


def _size(site: Site) -> Call:
    return Call("Size", (site.operand(),))


def _size_bounds(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    count = math.prod(call.operand(0).shape)
    return (Bounds(count, count, integral=True),)


def _fill(rng: random.Random, dtype: str) -> Tensor:
    """Draw the one-element tensor with the value that fills a constant: shape [1]."""
    info = DTYPES[dtype]
    if info.kind == "float":
        value = rng.choice((0.0, 1.0, -1.0, 0.5, rng.randint(-8, 8) / 4))
    elif info.bits <= 16:
        value = float(rng.choice((rng.randint(0, 1), rng.randint(int(info.low), int(info.high)))))
    else:
        value = float(rng.randint(0 if info.kind == "uint" else -9, 9))
    return tensor(np.array([value]), dtype)


def _constant_of_shape(site: Site) -> Call:
    value = None if site.dtype == "float32" and site.rng.random() < 0.3 else _fill(site.rng, site.dtype)
    return Call("ConstantOfShape", (vector(site, site.shape()),), attributes({"value": value}))


def _constant_of_shape_bounds(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    value = call.attributes.get("value")
    return (Bounds(0, 0, integral=True) if value is None else kept(measure(value.value)),)


def _range(site: Site) -> Call:
    """Start, limit and delta on a grid of quarters for floats, so that every element is exact."""
    rng = site.rng
    unit = Fraction(1, 4) if site.dtype.startswith("float") and rng.random() < 0.5 else Fraction(1)
    start, delta = rng.randint(-8, 8) * unit, rng.choice((1, 1, 2, 3, -1, -2)) * unit
    count = 0 if rng.random() < site.limits.zero_size else rng.randint(1, site.limits.max_dim)
    limit = start + count * delta - (rng.randint(0, abs(int(delta / unit)) - 1) * unit * (1 if delta > 0 else -1))
    if count == 0:
        limit = start - delta * rng.randint(0, 1)
    dtype = DTYPES[site.dtype].storage
    return Call("Range", tuple(site.known(np.array(float(v), dtype), site.dtype) for v in (start, limit, delta)))


def _range_bounds(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    first, limit = call.facts(0), call.facts(1)
    whole = first.integral and call.facts(2).integral
    return (Bounds(min(first.lo, limit.lo), max(first.hi, limit.hi), whole),)


def _range_holds(call: Call) -> bool:
    delta = call.operand(2).value
    return delta is not None and delta.size == 1 and bool(np.all(delta != 0))


def _advances(_: Node, value: RunOperands) -> bool:
    """A range with a delta of zero divides by zero."""
    delta = value(2)
    return delta is None or bool((delta.array != 0).all())


def _eye_like(site: Site) -> Call:
    x: Operand = site.operand(ranks=(2, 2))
    reach = max(x.shape)
    options = {
        "k": site.rng.choice((None, 0, site.rng.randint(-reach - 1, reach + 1))),
        "dtype": site.rng.choice((None, DTYPES[site.rng.choice(_EYES)].code)),
    }
    return Call("EyeLike", (x,), attributes(options))


_RANGES = ("float32", "float64", "int64", "int32")
"""Types of which onnx infers how long a range is; of int16 it does not."""
_EYES = ("float32", "float16", "float64", "int64", "int32", "int8", "uint8", "bool")


def _eye_like_bounds(_: Call, __: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    return (Bounds(0, 1, integral=True),)


def _constant_of_shape_holds(call: Call) -> bool:
    sizes: Shape | None = numbers(call, 0)
    return sizes is not None and all(size >= 0 for size in sizes)


_MOVES, _INTEGER = Exactness.MOVES, Exactness.INTEGER

SPECS = (
    OpSpec(
        "Shape", PLAIN, _shape, _shape_bounds, _MOVES, "filling", shapes=rules.shape_of_shape, traits=("reads-shape",)
    ),
    OpSpec("Size", PLAIN, _size, _size_bounds, _MOVES, "filling", shapes=rules.scalar, traits=("reads-shape",)),
    OpSpec(
        "ConstantOfShape",
        PLAIN,
        _constant_of_shape,
        _constant_of_shape_bounds,
        _MOVES,
        "filling",
        _constant_of_shape_holds,
        since=9,
        main=~0,
        shapes=rules.written_shape,
        well_formed=lambda call: call.operand(0).rank == 1,
        structural={"shape": (0,)},
        traits=("holds-sizes", "shape-arithmetic"),
    ),
    OpSpec(
        "Range",
        _RANGES,
        _range,
        _range_bounds,
        _INTEGER,
        "filling",
        _range_holds,
        since=11,
        well_formed=scalars(0, 1, 2),
        defined_on=_advances,
        structural={"size": (0, 1, 2)},
        traits=("holds-sizes", "shape-arithmetic"),
    ),
    OpSpec(
        "EyeLike",
        PLAIN,
        _eye_like,
        _eye_like_bounds,
        _MOVES,
        "filling",
        since=9,
        shapes=rules.like_first,
        well_formed=lambda call: call.operand(0).rank == 2,
    ),
)
