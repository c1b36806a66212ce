"""Entries of the language that compute element by element, with broadcasting.

Sources: the pages of the operators in the ONNX documentation; Max and Min propagate NaN as their reference does.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from miscompile.core.tensor import Array
from miscompile.transforms.rules.kinds import (
    ABSOLUTE,
    ANY,
    BOOLEAN,
    CHOSEN,
    COMPARED,
    CONVOLVED,
    ELEMENTS,
    FLOATING,
    INTEGRAL,
    NUMERIC,
    ORDERED,
    ORDERED_OR_EQUAL,
    RECTIFIED,
    RING,
    WITH_SIGN,
    Evaluate,
    Infer,
    Parameters,
    TermOperator,
    TermType,
    TermTypes,
    broadcast,
    widened,
)


def _same(types: TermTypes, parameters: Parameters, output: int) -> TermType | None:
    return types[0]


def _joined(types: TermTypes, parameters: Parameters, output: int) -> TermType | None:
    dtype, first = types[0]
    second = types[1]
    if second.dtype != dtype:
        return None
    if first == second.shape:
        return types[0]
    shape = broadcast(first, second.shape)
    return None if shape is None else TermType(dtype, shape)


def _compared(types: TermTypes, parameters: Parameters, output: int) -> TermType | None:
    found = _joined(types, parameters, output)
    return None if found is None else TermType("bool", found.shape)


def _cast(types: TermTypes, parameters: Parameters, output: int) -> TermType | None:
    return TermType(parameters[0], types[0].shape) if parameters[0] in ELEMENTS else None


def _clipped(types: TermTypes, parameters: Parameters, output: int) -> TermType | None:
    data, low, high = types
    return data if low == high == TermType(data.dtype, ()) else None


def _chosen(types: TermTypes, parameters: Parameters, output: int) -> TermType | None:
    condition, first, second = types
    if condition.dtype != "bool" or first.dtype != second.dtype:
        return None
    shape = broadcast(condition.shape, first.shape, second.shape)
    return None if shape is None else TermType(first.dtype, shape)


def _cast_value(arrays: tuple[Array, ...], parameters: Parameters, output: int) -> Array:
    """Convert as Cast does: to bool whether an element is not zero, from float to integer towards zero."""
    data, target = arrays[0], ELEMENTS[parameters[0]]
    return np.asarray(data != 0 if target == np.bool_ else data.astype(target))


def _clip_value(arrays: tuple[Array, ...], parameters: Parameters, output: int) -> Array:
    data, low, high = arrays
    return np.asarray(np.minimum(np.maximum(data, low), high))


def _sigmoid(data: Array) -> Array:
    """1 / (1 + exp(-x)) without overflow: the exponent is never positive."""
    wide = widened(data)
    small = np.exp(-np.abs(wide))
    one = wide.dtype.type(1)
    return np.asarray(np.where(wide >= 0, one / (one + small), small / (one + small))).astype(data.dtype)


def _rounded(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return `function` computed in float32 for narrower floats, and rounded once."""
    return lambda data: np.asarray(function(widened(data))).astype(data.dtype)


def _relu(data: Array) -> Array:
    return np.asarray(np.maximum(data, data.dtype.type(0)))


def _sign(data: Array) -> Array:
    return np.asarray(np.sign(data))


def _one(function: Callable[..., Any]) -> Evaluate:
    return lambda arrays, parameters, output: function(arrays[0])


def _two(function: Callable[..., Any]) -> Evaluate:
    return lambda arrays, parameters, output: function(arrays[0], arrays[1])


UNARY: Mapping[str, tuple[Callable[..., Any], Mapping[str, int]]] = {
    "Identity": (lambda data: data, ANY),
    "Neg": (np.negative, WITH_SIGN),
    "Abs": (np.abs, ABSOLUTE),
    "Relu": (_relu, RECTIFIED),
    "Sign": (_sign, NUMERIC),
    "Floor": (_rounded(np.floor), FLOATING),
    "Ceil": (_rounded(np.ceil), FLOATING),
    "Sqrt": (_rounded(np.sqrt), FLOATING),
    "Reciprocal": (_rounded(np.reciprocal), FLOATING),
    "Exp": (_rounded(np.exp), FLOATING),
    "Log": (_rounded(np.log), FLOATING),
    "Sin": (_rounded(np.sin), CONVOLVED),
    "Cos": (_rounded(np.cos), CONVOLVED),
    "Tanh": (_rounded(np.tanh), FLOATING),
    "Sigmoid": (_sigmoid, FLOATING),
    "Not": (np.logical_not, BOOLEAN),
    "BitwiseNot": (np.bitwise_not, INTEGRAL),
}

BINARY: Mapping[str, tuple[Callable[..., Any], Mapping[str, int]]] = {
    "Add": (np.add, RING),
    "Sub": (np.subtract, RING),
    "Mul": (np.multiply, RING),
    "Div": (np.divide, FLOATING),
    "Max": (np.maximum, NUMERIC),
    "Min": (np.minimum, NUMERIC),
    "And": (np.logical_and, BOOLEAN),
    "Or": (np.logical_or, BOOLEAN),
    "Xor": (np.logical_xor, BOOLEAN),
    "BitwiseAnd": (np.bitwise_and, INTEGRAL),
    "BitwiseOr": (np.bitwise_or, INTEGRAL),
    "BitwiseXor": (np.bitwise_xor, INTEGRAL),
}

COMPARISON: Mapping[str, tuple[Callable[..., Any], Mapping[str, int]]] = {
    "Equal": (np.equal, COMPARED),
    "Less": (np.less, ORDERED),
    "Greater": (np.greater, ORDERED),
    "LessOrEqual": (np.less_equal, ORDERED_OR_EQUAL),
    "GreaterOrEqual": (np.greater_equal, ORDERED_OR_EQUAL),
}


def _table(
    table: Mapping[str, tuple[Callable[..., Any], Mapping[str, int]]],
    arity: int,
    infer: Infer,
    lift: Callable[[Callable[..., Any]], Evaluate],
) -> tuple[TermOperator, ...]:
    return tuple(TermOperator(name, arity, (), infer, lift(f), dtypes) for name, (f, dtypes) in table.items())


OPERATORS = (
    *_table(UNARY, 1, _same, _one),
    *_table(BINARY, 2, _joined, _two),
    *_table(COMPARISON, 2, _compared, _two),
    TermOperator("Cast", 1, ("to",), _cast, _cast_value, ANY),
    TermOperator("Clip", 3, (), _clipped, _clip_value, NUMERIC),
    TermOperator("Where", 3, (), _chosen, lambda arrays, parameters, output: np.where(*arrays), CHOSEN, main=1),
)
