"""Operators of one operand, element by element."""

# ruff: noqa: ANN401 - tensors, and nested sequences of numbers

from typing import Any

import torch

from miscompile.targets.inductor.lowering.names import dtype_of
from miscompile.targets.lowering.table import lowers


@lowers("Neg")
def neg(x: Any) -> Any:
    """Minus x."""
    return torch.neg(x)


@lowers("Exp")
def exp(x: Any) -> Any:
    """e to the x."""
    return torch.exp(x)


@lowers("Log")
def log(x: Any) -> Any:
    """The natural logarithm."""
    return torch.log(x)


@lowers("Sqrt")
def sqrt(x: Any) -> Any:
    """The square root."""
    return torch.sqrt(x)


@lowers("Reciprocal")
def reciprocal(x: Any) -> Any:
    """One over x."""
    return torch.reciprocal(x)


@lowers("Abs")
def absolute(x: Any) -> Any:
    """The magnitude."""
    return torch.abs(x)


@lowers("Sin")
def sin(x: Any) -> Any:
    """The sine."""
    return torch.sin(x)


@lowers("Cos")
def cos(x: Any) -> Any:
    """The cosine."""
    return torch.cos(x)


@lowers("Tan")
def tan(x: Any) -> Any:
    """The tangent."""
    return torch.tan(x)


@lowers("Asin")
def asin(x: Any) -> Any:
    """The inverse sine."""
    return torch.asin(x)


@lowers("Acos")
def acos(x: Any) -> Any:
    """The inverse cosine."""
    return torch.acos(x)


@lowers("Atan")
def atan(x: Any) -> Any:
    """The inverse tangent."""
    return torch.atan(x)


@lowers("Sinh")
def sinh(x: Any) -> Any:
    """The hyperbolic sine."""
    return torch.sinh(x)


@lowers("Cosh")
def cosh(x: Any) -> Any:
    """The hyperbolic cosine."""
    return torch.cosh(x)


@lowers("Asinh")
def asinh(x: Any) -> Any:
    """The inverse hyperbolic sine."""
    return torch.asinh(x)


@lowers("Acosh")
def acosh(x: Any) -> Any:
    """The inverse hyperbolic cosine."""
    return torch.acosh(x)


@lowers("Atanh")
def atanh(x: Any) -> Any:
    """The inverse hyperbolic tangent."""
    return torch.atanh(x)


@lowers("Tanh")
def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    return torch.tanh(x)


@lowers("Erf")
def erf(x: Any) -> Any:
    """The error function."""
    return torch.erf(x)


@lowers("Floor")
def floor(x: Any) -> Any:
    """The next integer below."""
    return torch.floor(x)


@lowers("Ceil")
def ceil(x: Any) -> Any:
    """The next integer above."""
    return torch.ceil(x)


@lowers("Sign")
def sign(x: Any) -> Any:
    """-1, 0 or 1."""
    return torch.sign(x)


@lowers("IsNaN")
def is_nan(x: Any) -> Any:
    """Whether an element is no number."""
    return torch.isnan(x)


@lowers("Not")
def logical_not(x: Any) -> Any:
    """The other truth value."""
    return torch.logical_not(x)


@lowers("BitwiseNot")
def bitwise_not(x: Any) -> Any:
    """Every bit inverted."""
    return torch.bitwise_not(x)


@lowers("Round")
def round_half_even(x: Any) -> Any:
    """The nearest integer, the even one of two."""
    return torch.round(x)


@lowers("IsInf")
def is_inf(x: Any, *, detect_negative: int = 1, detect_positive: int = 1) -> Any:
    """Whether an element is infinite, with a requested sign."""
    if detect_negative and detect_positive:
        return torch.isinf(x)
    if detect_negative:
        return torch.isneginf(x)
    return torch.isposinf(x) if detect_positive else torch.zeros_like(x, dtype=torch.bool)


@lowers("Identity")
def identity(x: Any) -> Any:
    """x itself."""
    return x


@lowers("Cast")
def cast(x: Any, *, to: str, saturate: int = 1) -> Any:
    """x in another element type; floats lose their fraction on the way to integers."""
    return x.to(dtype_of(to))


@lowers("BitCast")
def bit_cast(x: Any, *, to: str) -> Any:
    """The same bits as another element type of the same width."""
    return x.view(dtype_of(to))


@lowers("CastLike")
def cast_like(x: Any, other: Any, *, saturate: int = 1) -> Any:
    """x in the element type of `other`."""
    return x.to(other.dtype)
