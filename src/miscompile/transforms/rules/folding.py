"""Entries of the language that fold axes: reductions, the place of an extreme, Softmax.

Reductions name the axes that they fold, at least one, and none of size zero except in ReduceSum, because the results of
the others on no elements differ between operator versions.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from miscompile.core.tensor import Array
from miscompile.transforms.rules.kinds import (
    FLOATING,
    NUMERIC,
    WIDE,
    WIDE_AND_BYTES,
    Evaluate,
    Parameters,
    TermOperator,
    TermType,
    TermTypes,
    distinct_axes,
    widened,
)


def _reduced(types: TermTypes, parameters: Parameters, output: int) -> TermType | None:
    dtype, shape = types[0]
    axes, keepdims = parameters
    if not axes or keepdims not in (0, 1) or not distinct_axes(axes, len(shape)):
        return None
    if keepdims:
        return TermType(dtype, tuple([1 if axis in axes else size for axis, size in enumerate(shape)]))
    return TermType(dtype, tuple([size for axis, size in enumerate(shape) if axis not in axes]))


def _reduced_something(types: TermTypes, parameters: Parameters, output: int) -> TermType | None:
    shape = types[0].shape
    found = _reduced(types, parameters, output)
    return found if found is not None and all(shape[axis] for axis in parameters[0]) else None


def _folded(function: Callable[..., Any]) -> Evaluate:
    def evaluate(arrays: tuple[Array, ...], parameters: Parameters, output: int) -> Array:
        data = arrays[0]
        axes, keepdims = parameters
        return np.asarray(function(widened(data), axis=axes, keepdims=bool(keepdims))).astype(data.dtype)

    return evaluate


def _sum(data: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    return np.asarray(np.sum(data, axis, data.dtype, keepdims=keepdims))


def _mean(data: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    return np.asarray(np.mean(data, axis, keepdims=keepdims))


def _placed(types: TermTypes, parameters: Parameters, output: int) -> TermType | None:
    axis, keepdims, last = parameters
    if last not in (0, 1):
        return None
    found = _reduced_something(types, ((axis,), keepdims), output)
    return None if found is None else TermType("int64", found.shape)


def _extreme_place(function: Callable[..., Any]) -> Evaluate:
    """Return a function that finds the first or last position of an extreme; NaN counts as extreme, as in numpy."""

    def evaluate(arrays: tuple[Array, ...], parameters: Parameters, output: int) -> Array:
        axis, keepdims, last = parameters
        data = widened(arrays[0])
        if not last:
            return np.asarray(function(data, axis=axis, keepdims=bool(keepdims)), np.int64)
        backwards = function(np.flip(data, axis), axis=axis, keepdims=bool(keepdims))
        return np.asarray(data.shape[axis] - 1 - backwards, np.int64)

    return evaluate


def _softmax(types: TermTypes, parameters: Parameters, output: int) -> TermType | None:
    data, axis = types[0], parameters[0]
    return data if 0 <= axis < len(data.shape) and data.shape[axis] else None


def _softmax_value(arrays: tuple[Array, ...], parameters: Parameters, output: int) -> Array:
    wide, axis = widened(arrays[0]), parameters[0]
    powers = np.exp(wide - np.max(wide, axis, keepdims=True))
    return np.asarray(powers / np.sum(powers, axis, keepdims=True)).astype(arrays[0].dtype)


_FOLDS: Mapping[str, tuple[Callable[..., Any], Mapping[str, int]]] = {
    "ReduceMax": (np.max, WIDE_AND_BYTES),
    "ReduceMin": (np.min, WIDE_AND_BYTES),
    "ReduceMean": (_mean, FLOATING),
}

OPERATORS = (
    TermOperator("ReduceSum", 1, ("axes", "keepdims"), _reduced, _folded(_sum), WIDE),
    *(
        TermOperator(name, 1, ("axes", "keepdims"), _reduced_something, _folded(function), dtypes)
        for name, (function, dtypes) in _FOLDS.items()
    ),
    TermOperator("ArgMax", 1, ("axis", "keepdims", "last"), _placed, _extreme_place(np.argmax), NUMERIC),
    TermOperator("ArgMin", 1, ("axis", "keepdims", "last"), _placed, _extreme_place(np.argmin), NUMERIC),
    TermOperator("Softmax", 1, ("axis",), _softmax, _softmax_value, FLOATING),
)
