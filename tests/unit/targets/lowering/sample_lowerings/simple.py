"""Lowerings to numpy, for tests of the table and the writer."""

from typing import Any

import numpy as np

from miscompile.targets.lowering.table import lowers

TYPES: dict[str, Any] = {"float32": np.float32, "int64": np.int64}


@lowers("Relu")
def relu(x: Any) -> Any:
    """Zero below zero."""
    return np.maximum(x, 0)


@lowers("Add", "Sub")
def binary(x: Any, y: Any, *, op: str) -> Any:
    """Both."""
    return x + y if op == "Add" else x - y


def typed(x: Any, to: str) -> Any:
    """Another type."""
    return x.astype(TYPES[to])


@lowers("Cast")
def cast(x: Any, *, to: str, saturate: int = 1) -> Any:
    """Another type."""
    return typed(x, to)


@lowers("Reshape", static=(1,))
def reshape(x: Any, shape: tuple[int, ...], *, allowzero: int = 0) -> Any:
    """Another shape."""
    return x.reshape(shape)


@lowers("Split", static=(1,))
def split(x: Any, sizes: tuple[int, ...] | None = None, *, axis: int = 0, outputs: int, num_outputs: int = 0) -> Any:
    """Pieces."""
    return tuple(np.array_split(x, outputs, axis))


@lowers("Max")
def largest(*xs: Any) -> Any:
    """The largest of several operands."""
    return np.maximum.reduce(xs)
