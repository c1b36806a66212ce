"""The types of the term language: tensor types, symbols, and operators with their element types by opset.

A term is an ONNX operator with its parameters fixed, over tensors of concrete type. The element types of operators are
listed by hand, because reading them from onnx's schemas would dominate the start-up time; the tests compare them with
the schemas.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from miscompile.base.dtypes import DTYPES, FLOATS, INTEGERS, NUMBERS, SIGNED, UNSIGNED
from miscompile.core.tensor import Array

Parameters = tuple[Any, ...]


class TermType(NamedTuple):
    """An element type by its ONNX name, and concrete sizes. Values of unknown sizes have no type."""

    dtype: str
    shape: tuple[int, ...]


TermTypes = tuple[TermType, ...]
Infer = Callable[[TermTypes, Parameters, int], TermType | None]
Evaluate = Callable[[tuple[Array, ...], Parameters, int], Array]


class Symbol(NamedTuple):
    """An operator with its parameters fixed, in the order and the canonical form of its entry in the language.

    `output` says which output of the operator the term is. Children are stored separately, so that a symbol is a key.
    """

    op: str
    parameters: tuple[Hashable, ...] = ()
    output: int = 0


@dataclass(frozen=True, slots=True)
class TermOperator:
    """An entry of the language.

    `arity` is None where the number of operands varies. `infer` returns the type of a term, or None when it is
    ill-formed; `evaluate` computes it with numpy by the ONNX operator's page: integers wrap around, floats of fewer
    than 32 bits are accumulated in float32 and rounded once. `dtypes` holds the element types of operand `main`, each
    with the first opset (13 or later) that supports it.
    """

    name: str
    arity: int | None
    parameters: tuple[str, ...]
    infer: Infer
    evaluate: Evaluate
    dtypes: Mapping[str, int]
    main: int = 0


def since(*groups: tuple[int, tuple[str, ...]]) -> Mapping[str, int]:
    """Return the first opset of each dtype from groups of (opset, dtypes)."""
    return MappingProxyType({dtype: opset for opset, dtypes in groups for dtype in dtypes})


WIDE_INTEGERS = ("int32", "int64", "uint32", "uint64")
NARROW_INTEGERS = ("int8", "int16", "uint8", "uint16")
WITHOUT_BFLOAT16 = ("float32", "float16", "float64")
KNOWN = (*NUMBERS, "bool")
"""Every element type of the language."""

ANY = since((13, KNOWN))
NUMERIC = since((13, NUMBERS))
FLOATING = since((13, FLOATS))
INTEGRAL = since((18, INTEGERS))
BOOLEAN = since((13, ("bool",)))
RING = since((13, (*FLOATS, *WIDE_INTEGERS)), (14, NARROW_INTEGERS))
WIDE = since((13, (*FLOATS, *WIDE_INTEGERS)))
WIDE_AND_BYTES = since((13, (*FLOATS, *WIDE_INTEGERS, "int8", "uint8")))
WITH_SIGN = since((13, (*FLOATS, *SIGNED)))
ABSOLUTE = since((13, (*FLOATS, *SIGNED, *UNSIGNED)))
RECTIFIED = since((13, FLOATS), (14, SIGNED))
COMPARED = since((13, KNOWN))
ORDERED = since((13, NUMBERS))
ORDERED_OR_EQUAL = since((13, (*WITHOUT_BFLOAT16, *INTEGERS)), (16, ("bfloat16",)))
CHOSEN = since((13, (*WITHOUT_BFLOAT16, *INTEGERS, "bool")), (16, ("bfloat16",)))
CONVOLVED = since((13, WITHOUT_BFLOAT16), (22, ("bfloat16",)))
POOLED = since((13, (*WITHOUT_BFLOAT16, "int8", "uint8")), (22, ("bfloat16",)))
NORMALISED = since((13, WITHOUT_BFLOAT16), (14, ("bfloat16",)))

BFLOAT16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
ELEMENTS: Mapping[str, np.dtype[Any]] = MappingProxyType(
    {dtype: BFLOAT16 if dtype == "bfloat16" else DTYPES[dtype].storage for dtype in KNOWN}
)
"""The numpy type in which terms of each element type are evaluated (bfloat16 as numbers, not as words)."""


def element_type(array: Array) -> str:
    """Return the ONNX name of an evaluated array's element type."""
    return "bfloat16" if array.dtype == BFLOAT16 else array.dtype.name


def widened(array: Array) -> Array:
    """Return floats of fewer than 32 bits as float32, and everything else as it is: the type to accumulate in."""
    return array.astype(np.float32) if array.dtype.itemsize == 2 and element_type(array) in FLOATS else array


def broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the shape to which `shapes` broadcast (ONNX, Multidirectional Broadcasting); None when they do not."""
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    rank = max(map(len, shapes))
    found = [1] * rank
    for shape in shapes:
        for place, size in enumerate(shape, rank - len(shape)):
            if size != 1 and found[place] != size:
                if found[place] != 1:
                    return None
                found[place] = size
    return tuple(found)


def distinct_axes(axes: tuple[int, ...], rank: int) -> bool:
    """Tell whether `axes` are canonical: in rising order, each once, none negative, all below `rank`."""
    return all(0 <= axis < rank for axis in axes) and all(a < b for a, b in pairwise(axes))
