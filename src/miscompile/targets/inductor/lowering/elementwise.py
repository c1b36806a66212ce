"""Operators of one operand, element by element."""

# ruff: noqa: ANN401 - tensors, and nested sequences of numbers

from typing import Any

import torch

from miscompile.targets.inductor.lowering.names import dtype_of
from miscompile.targets.lowering.table import lowers

neg = lowers("Neg")(lambda x: torch.neg(x))
exp = lowers("Exp")(lambda x: torch.exp(x))
log = lowers("Log")(lambda x: torch.log(x))
sqrt = lowers("Sqrt")(lambda x: torch.sqrt(x))
reciprocal = lowers("Reciprocal")(lambda x: torch.reciprocal(x))
absolute = lowers("Abs")(lambda x: torch.abs(x))
sin = lowers("Sin")(lambda x: torch.sin(x))
cos = lowers("Cos")(lambda x: torch.cos(x))
tan = lowers("Tan")(lambda x: torch.tan(x))
asin = lowers("Asin")(lambda x: torch.asin(x))
acos = lowers("Acos")(lambda x: torch.acos(x))
atan = lowers("Atan")(lambda x: torch.atan(x))
sinh = lowers("Sinh")(lambda x: torch.sinh(x))
cosh = lowers("Cosh")(lambda x: torch.cosh(x))
asinh = lowers("Asinh")(lambda x: torch.asinh(x))
acosh = lowers("Acosh")(lambda x: torch.acosh(x))
atanh = lowers("Atanh")(lambda x: torch.atanh(x))
tanh = lowers("Tanh")(lambda x: torch.tanh(x))
erf = lowers("Erf")(lambda x: torch.erf(x))
floor = lowers("Floor")(lambda x: torch.floor(x))
ceil = lowers("Ceil")(lambda x: torch.ceil(x))
sign = lowers("Sign")(lambda x: torch.sign(x))  # -1, 0 or 1
is_nan = lowers("IsNaN")(lambda x: torch.isnan(x))
logical_not = lowers("Not")(lambda x: torch.logical_not(x))
bitwise_not = lowers("BitwiseNot")(lambda x: torch.bitwise_not(x))
round_half_even = lowers("Round")(lambda x: torch.round(x))  # the nearest integer, the even one of two


@lowers("IsInf")
def is_inf(x: Any, *, detect_negative: int = 1, detect_positive: int = 1) -> Any:
    """Whether an element is infinite, with a requested sign."""
    if detect_negative and detect_positive:
        return torch.isinf(x)
    if detect_negative:
        return torch.isneginf(x)
    return torch.isposinf(x) if detect_positive else torch.zeros_like(x, dtype=torch.bool)


identity = lowers("Identity")(lambda x: x)


@lowers("Cast")
def cast(x: Any, *, to: str, saturate: int = 1) -> Any:
    """x in another element type; floats lose their fraction on the way to integers."""
    return x.to(dtype_of(to))


bit_cast = lowers("BitCast")(lambda x, *, to: x.view(dtype_of(to)))
cast_like = lowers("CastLike")(lambda x, other, *, saturate=1: x.to(other.dtype))
