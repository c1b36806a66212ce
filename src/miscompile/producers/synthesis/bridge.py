"""Bridges: conversion of a value of any type to a required type (OATest, section 3.2.2).

The number of elements is adapted by Pad or Slice, the shape by Reshape, the element type by Cast. Facts about the
elements stay valid: padding repeats existing elements, and elements out of a Cast's range are clipped before it.
"""

import math
from functools import lru_cache

import numpy as np

from miscompile.base.dtypes import DTYPES, is_float
from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.attributes import attribute
from miscompile.ops.facts import Facts, measure
from miscompile.ops.spec import Operand, Shape
from miscompile.producers.guards import guard
from miscompile.producers.scope import Scope

_INT_ENDS = (-100.0, 100.0)
"""Interval to which floats are clipped before they become integers, as far as the integer type allows."""


_CARRIERS = ("float32", "int32", "int64")
"""Types to convert to when a target cannot move elements of the operand's type."""


def bridge(scope: Scope, operand: Operand, dtype: str, shape: Shape) -> Operand:
    """Return a value of `dtype` and `shape` computed from `operand`, or `operand` itself if it has both.

    The shape is adapted in the operand's own type, else in the required one, else in a carrier type. Raises
    RejectedDraft when the target supports none of these, or the operand is empty; the scope is then unchanged.
    """
    mark = scope.mark()
    own = () if operand.dtype == "bool" and dtype != "bool" else (operand.dtype,)  # few compilers pad booleans
    for carrier in dict.fromkeys((*own, dtype, *_CARRIERS)):
        try:
            return _cast(scope, _shaped(scope, _cast(scope, operand, carrier), shape), dtype)
        except RejectedDraft:
            scope.rollback(mark)
    raise RejectedDraft(f"no bridge from {operand.dtype} to {dtype} is supported by the target")


def _shaped(scope: Scope, operand: Operand, shape: Shape) -> Operand:
    if operand.shape == shape:
        return operand
    have, wanted = math.prod(operand.shape), math.prod(shape)
    if have != wanted:
        if not have:
            raise RejectedDraft("there are no elements to make others from")
        flat = operand if len(operand.shape) == 1 else _reshape(scope, operand, (have,))
        operand = _resized(scope, flat, wanted)
    return operand if operand.shape == shape else _reshape(scope, operand, shape)


def _resized(scope: Scope, flat: Operand, wanted: int) -> Operand:
    """Drop or repeat elements: by Slice or Pad, and by Gather where the target refuses these."""
    mark = scope.mark()
    try:
        return _sliced(scope, flat, wanted) if flat.shape[0] > wanted else _padded(scope, flat, wanted)
    except RejectedDraft:
        scope.rollback(mark)
    places = tuple(place % flat.shape[0] for place in range(wanted))
    return scope.call("Gather", flat, _numbers(scope, places), attributes={"axis": attribute(0)}, drawn=True)


def _reshape(scope: Scope, operand: Operand, shape: Shape) -> Operand:
    if 0 in shape:
        raise RejectedDraft("a size of zero means another thing to Reshape")
    return scope.call("Reshape", operand, _numbers(scope, shape), drawn=True)


def _sliced(scope: Scope, flat: Operand, wanted: int) -> Operand:
    """Slice `wanted` elements from the front, the end, or the middle."""
    first = int(scope.rng.random() * (flat.shape[0] - wanted + 1))
    given = (_numbers(scope, (value,)) for value in (first, first + wanted, 0))
    return scope.call("Slice", flat, *given, drawn=True)


def _padded(scope: Scope, flat: Operand, wanted: int) -> Operand:
    """Add elements at the end: copies of the last one, or a constant from the interval of the others."""
    pads = _numbers(scope, (0, wanted - flat.shape[0]))
    if scope.rng.random() < 0.5:
        mark = scope.mark()
        try:
            return scope.call("Pad", flat, pads, attributes={"mode": attribute("edge")}, drawn=True)
        except RejectedDraft:
            scope.rollback(mark)
    value = min(max(0.0, flat.facts.lo), flat.facts.hi)
    number = value if is_float(flat.dtype) else int(value)
    return scope.call("Pad", flat, pads, scope.new_constant(tensor(np.asarray(number), flat.dtype)), drawn=True)


def _cast(scope: Scope, operand: Operand, dtype: str) -> Operand:
    if operand.dtype == dtype:
        return operand
    info = DTYPES[dtype]
    if dtype != "bool":
        lo, hi = (
            (info.low / 2, info.high / 2)
            if is_float(dtype)
            else (max(info.low, _INT_ENDS[0]), min(info.high, _INT_ENDS[1]))
        )
        if not operand.facts.inside(lo, hi):
            operand = guard(scope, operand, (lo, hi))
    return scope.call("Cast", operand, attributes={"to": attribute(info.code)}, drawn=True)


def _numbers(scope: Scope, values: Shape) -> Operand:
    return scope.given_constant(*_vector(values), free=False)


@lru_cache(1 << 12)
def _vector(values: Shape) -> tuple[Tensor, Facts]:
    """Return the constant of these integers and its facts; equal ones are one tensor."""
    value = Tensor("int64", np.asarray(values, np.int64))
    value.array.flags.writeable = False
    return value, measure(value)
