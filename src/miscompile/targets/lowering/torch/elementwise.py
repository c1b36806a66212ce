"""Operators that work element by element."""

# ruff: noqa: ANN401 - tensors, and nested sequences of numbers

from typing import Any

import torch

from miscompile.targets.lowering.table import lowers
from miscompile.targets.lowering.torch.names import dtype_of

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
round_half_even = lowers("Round")(lambda x: torch.round(x))  # the nearest integer; halves round to even


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
    """x in another element type; floats truncate to integers."""
    return x.to(dtype_of(to))


bit_cast = lowers("BitCast")(lambda x, *, to: x.view(dtype_of(to)))
cast_like = lowers("CastLike")(lambda x, other, *, saturate=1: x.to(other.dtype))


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
    """x shifted by y bits in the given direction."""
    shift = torch.bitwise_left_shift if direction == "LEFT" else torch.bitwise_right_shift
    return shift(x, y)


where = lowers("Where")(lambda condition, x, y: torch.where(condition, x, y))  # x where the condition holds, else y
