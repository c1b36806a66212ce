"""Comparisons, truth values and bits of two operands."""

# ruff: noqa: ANN401 - tensors, and nested sequences of numbers

from typing import Any

import torch

from miscompile.targets.lowering.table import lowers

equal = lowers("Equal")(lambda x, y: torch.eq(x, y))
less = lowers("Less")(lambda x, y: torch.lt(x, y))
less_equal = lowers("LessOrEqual")(lambda x, y: torch.le(x, y))
greater = lowers("Greater")(lambda x, y: torch.gt(x, y))
greater_equal = lowers("GreaterOrEqual")(lambda x, y: torch.ge(x, y))
logical_and = lowers("And")(lambda x, y: torch.logical_and(x, y))
logical_or = lowers("Or")(lambda x, y: torch.logical_or(x, y))
logical_xor = lowers("Xor")(lambda x, y: torch.logical_xor(x, y))
bitwise_and = lowers("BitwiseAnd")(lambda x, y: torch.bitwise_and(x, y))
bitwise_or = lowers("BitwiseOr")(lambda x, y: torch.bitwise_or(x, y))
bitwise_xor = lowers("BitwiseXor")(lambda x, y: torch.bitwise_xor(x, y))


@lowers("BitShift")
def bit_shift(x: Any, y: Any, *, direction: str) -> Any:
    """The bits of x moved by y places."""
    shift = torch.bitwise_left_shift if direction == "LEFT" else torch.bitwise_right_shift
    return shift(x, y)


where = lowers("Where")(lambda condition, x, y: torch.where(condition, x, y))  # x where the condition holds, else y
