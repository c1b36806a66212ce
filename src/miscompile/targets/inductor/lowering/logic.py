"""Comparisons, truth values and bits of two operands."""

# ruff: noqa: ANN401 - tensors, and nested sequences of numbers

from typing import Any

import torch

from miscompile.targets.lowering.table import lowers


@lowers("Equal")
def equal(x: Any, y: Any) -> Any:
    """Whether x = y."""
    return torch.eq(x, y)


@lowers("Less")
def less(x: Any, y: Any) -> Any:
    """Whether x < y."""
    return torch.lt(x, y)


@lowers("LessOrEqual")
def less_equal(x: Any, y: Any) -> Any:
    """Whether x <= y."""
    return torch.le(x, y)


@lowers("Greater")
def greater(x: Any, y: Any) -> Any:
    """Whether x > y."""
    return torch.gt(x, y)


@lowers("GreaterOrEqual")
def greater_equal(x: Any, y: Any) -> Any:
    """Whether x >= y."""
    return torch.ge(x, y)


@lowers("And")
def logical_and(x: Any, y: Any) -> Any:
    """Whether both are true."""
    return torch.logical_and(x, y)


@lowers("Or")
def logical_or(x: Any, y: Any) -> Any:
    """Whether one or both are true."""
    return torch.logical_or(x, y)


@lowers("Xor")
def logical_xor(x: Any, y: Any) -> Any:
    """Whether one alone is true."""
    return torch.logical_xor(x, y)


@lowers("BitwiseAnd")
def bitwise_and(x: Any, y: Any) -> Any:
    """The bits that both have."""
    return torch.bitwise_and(x, y)


@lowers("BitwiseOr")
def bitwise_or(x: Any, y: Any) -> Any:
    """The bits that one or both have."""
    return torch.bitwise_or(x, y)


@lowers("BitwiseXor")
def bitwise_xor(x: Any, y: Any) -> Any:
    """The bits that one alone has."""
    return torch.bitwise_xor(x, y)


@lowers("BitShift")
def bit_shift(x: Any, y: Any, *, direction: str) -> Any:
    """The bits of x moved by y places."""
    shift = torch.bitwise_left_shift if direction == "LEFT" else torch.bitwise_right_shift
    return shift(x, y)


@lowers("Where")
def where(condition: Any, x: Any, y: Any) -> Any:
    """x where the condition holds, else y."""
    return torch.where(condition, x, y)
