"""Arithmetic of two or more operands."""

# ruff: noqa: ANN401 - tensors, and nested sequences of numbers

from typing import Any

import torch

from miscompile.targets.lowering.table import lowers

add = lowers("Add", plain=(0, 1))(lambda x, y: x + y)
subtract = lowers("Sub", plain=(0, 1))(lambda x, y: x - y)
multiply = lowers("Mul", plain=(0, 1))(lambda x, y: x * y)


@lowers("Div", plain=(1,))
def divide(x: Any, y: Any) -> Any:
    """x / y; integers are truncated."""
    return x / y if x.is_floating_point() else torch.div(x, y, rounding_mode="trunc")


@lowers("Mod", plain=(1,))
def modulo(x: Any, y: Any, *, fmod: int = 0) -> Any:
    """The remainder, with the sign of y, or of x with `fmod`."""
    return torch.fmod(x, y) if fmod else torch.remainder(x, y)


@lowers("Pow", plain=(1,))
def power(x: Any, y: Any) -> Any:
    """x to the y, in the type of x."""
    if not isinstance(y, torch.Tensor):
        return torch.pow(x, y).to(x.dtype)
    common = torch.promote_types(x.dtype, y.dtype) if y.is_floating_point() else x.dtype
    return torch.pow(x.to(common), y.to(common)).to(x.dtype)


@lowers("Max")
def largest(*xs: Any) -> Any:
    """The largest of all operands."""
    result = xs[0]
    for x in xs[1:]:
        result = torch.maximum(result, x)
    return result


@lowers("Min")
def smallest(*xs: Any) -> Any:
    """The smallest of all operands."""
    result = xs[0]
    for x in xs[1:]:
        result = torch.minimum(result, x)
    return result


@lowers("Sum")
def total(*xs: Any) -> Any:
    """The sum of all operands."""
    result = xs[0]
    for x in xs[1:]:
        result = result + x
    return result


mean = lowers("Mean")(lambda *xs: total(*xs) / len(xs))
