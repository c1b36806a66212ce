"""Operators that work element by element."""

# ruff: noqa: ANN401 - symbolic tensors, and nested sequences of numbers

from typing import Any

import numpy as np

from miscompile.targets.litert.tensors import emit, only, paired, permuted, same, tensor
from miscompile.targets.lowering.table import lowers

REAL = "float32"
SIGNED = ("float32", "int32", "int64")
ANY = ("float32", "int32", "int64", "bool", "int8", "uint8", "int16")

neg = lowers("Neg")(lambda x: same("NEG", x, *SIGNED, options="NegOptions"))
absolute = lowers("Abs")(lambda x: same("ABS", x, "float32", "int32", options="AbsOptions"))
exp = lowers("Exp")(lambda x: same("EXP", x, REAL, options="ExpOptions"))
log = lowers("Log")(lambda x: same("LOG", x, REAL))
sqrt = lowers("Sqrt")(lambda x: same("SQRT", x, REAL))
sin = lowers("Sin")(lambda x: same("SIN", x, REAL))
cos = lowers("Cos")(lambda x: same("COS", x, REAL, options="CosOptions"))
tanh = lowers("Tanh")(lambda x: same("TANH", x, REAL))
sigmoid = lowers("Sigmoid")(lambda x: same("LOGISTIC", x, REAL))
floor = lowers("Floor")(lambda x: same("FLOOR", x, REAL))
ceil = lowers("Ceil")(lambda x: same("CEIL", x, REAL))
round_half_even = lowers("Round")(lambda x: same("ROUND", x, REAL))
sign = lowers("Sign")(lambda x: same("SIGN", x, "float32", "int32", options="SignOptions"))
logical_not = lowers("Not")(lambda x: same("LOGICAL_NOT", x, "bool", options="LogicalNotOptions"))
relu = lowers("Relu")(lambda x: same("RELU", x, REAL))
leaky_relu = lowers("LeakyRelu")(
    lambda x, *, alpha=0.01: same("LEAKY_RELU", x, REAL, options="LeakyReluOptions", alpha=alpha)
)
hard_swish = lowers("HardSwish")(lambda x: same("HARD_SWISH", x, REAL, options="HardSwishOptions"))
gelu = lowers("Gelu")(
    lambda x, *, approximate="none": same("GELU", x, REAL, options="GeluOptions", approximate=approximate == "tanh")
)
reciprocal = lowers("Reciprocal")(lambda x: paired("DIV", tensor(1, x.dtype), x, (REAL,), "DivOptions"))
identity = lowers("Identity")(lambda x: x)


@lowers("Elu")
def elu(x: Any, *, alpha: float = 1.0) -> Any:
    """x, and exp(x) - 1 where x is negative."""
    if alpha != 1:
        raise NotImplementedError("Elu has a lowering for alpha 1 only")
    return same("ELU", x, REAL)


@lowers("Cast")
def cast(x: Any, *, to: str, saturate: int = 1) -> Any:
    """x in another element type."""
    if to not in ANY or x.dtype not in ANY:
        raise NotImplementedError(f"Cast from {x.dtype} to {to} has no lowering")
    return emit("CAST", [x], x.shape, to, "CastOptions") if to != x.dtype else x


add = lowers("Add")(lambda x, y: paired("ADD", x, y, SIGNED, "AddOptions"))
subtract = lowers("Sub")(lambda x, y: paired("SUB", x, y, SIGNED, "SubOptions"))
multiply = lowers("Mul")(lambda x, y: paired("MUL", x, y, SIGNED, "MulOptions"))
divide = lowers("Div")(lambda x, y: paired("DIV", x, y, ("float32", "int32"), "DivOptions"))
equal = lowers("Equal")(lambda x, y: paired("EQUAL", x, y, (*SIGNED, "bool"), "EqualOptions", "bool"))
less = lowers("Less")(lambda x, y: paired("LESS", x, y, SIGNED, "LessOptions", "bool"))
less_equal = lowers("LessOrEqual")(lambda x, y: paired("LESS_EQUAL", x, y, SIGNED, "LessEqualOptions", "bool"))
greater = lowers("Greater")(lambda x, y: paired("GREATER", x, y, SIGNED, "GreaterOptions", "bool"))
greater_equal = lowers("GreaterOrEqual")(
    lambda x, y: paired("GREATER_EQUAL", x, y, SIGNED, "GreaterEqualOptions", "bool")
)
logical_and = lowers("And")(lambda x, y: paired("LOGICAL_AND", x, y, ("bool",), "LogicalAndOptions"))
logical_or = lowers("Or")(lambda x, y: paired("LOGICAL_OR", x, y, ("bool",), "LogicalOrOptions"))
logical_xor = lowers("Xor")(lambda x, y: paired("NOT_EQUAL", x, y, ("bool",), "NotEqualOptions"))
bitwise_xor = lowers("BitwiseXor")(
    lambda x, y: paired("BITWISE_XOR", x, y, ("int8", "uint8", "int16", "int32"), "BitwiseXorOptions")
)


@lowers("Mod")
def modulo(x: Any, y: Any, *, fmod: int = 0) -> Any:
    """The remainder with the sign of y."""
    if fmod:
        raise NotImplementedError("Mod with the sign of the first operand has no lowering")
    return paired("FLOOR_MOD", x, y, SIGNED, "FloorModOptions")


@lowers("Pow")
def power(x: Any, y: Any) -> Any:
    """x to the y, both of one type."""
    if x.dtype != y.dtype:
        raise NotImplementedError("Pow of two element types has no lowering")
    return paired("POW", x, y, (REAL,), "PowOptions")


def folded(code: str, xs: Any) -> Any:
    """Return the result of an operator of two operands over all of `xs`."""
    result = xs[0]
    for x in xs[1:]:
        result = paired(code, result, x, SIGNED, "MaximumMinimumOptions" if code != "ADD" else "AddOptions")
    return result


largest = lowers("Max")(lambda *xs: folded("MAXIMUM", xs))
smallest = lowers("Min")(lambda *xs: folded("MINIMUM", xs))
total = lowers("Sum")(lambda *xs: folded("ADD", xs))


@lowers("Clip")
def clip(x: Any, low: Any = None, high: Any = None) -> Any:
    """x limited to [low, high]."""
    x = x if low is None else paired("MAXIMUM", x, low, SIGNED, "MaximumMinimumOptions")
    return x if high is None else paired("MINIMUM", x, high, SIGNED, "MaximumMinimumOptions")


@lowers("PRelu")
def prelu(x: Any, slope: Any) -> Any:
    """x, and slope * x where x is negative."""
    return paired("PRELU", x, slope, (REAL,))


@lowers("Where")
def where(condition: Any, x: Any, y: Any) -> Any:
    """x where the condition holds, else y."""
    shape = np.broadcast_shapes(condition.shape, x.shape, y.shape)
    return emit("SELECT_V2", [condition, only(x, *ANY), only(y, *ANY)], shape, x.dtype, "SelectV2Options")


def last_axis(code: str, options: str, x: Any, axis: int, **fields: Any) -> Any:
    """Return the result of an operator that works along the last axis, applied along another one."""
    rank = len(x.shape)
    if rank == 0:
        raise NotImplementedError(f"{code} of a single number has no lowering")
    axis %= rank
    perm = [i for i in range(rank) if i != axis] + [axis]
    inner = x if axis == rank - 1 else permuted(x, perm)
    y = same(code, inner, REAL, options=options, **fields)
    return y if axis == rank - 1 else permuted(y, [perm.index(i) for i in range(rank)])


@lowers("Softmax")
def softmax(x: Any, *, axis: int = -1) -> Any:
    """exp(x), divided by its sum along an axis."""
    return last_axis("SOFTMAX", "SoftmaxOptions", x, axis, beta=1.0)


log_softmax = lowers("LogSoftmax")(lambda x, *, axis=-1: last_axis("LOG_SOFTMAX", "LogSoftmaxOptions", x, axis))


@lowers("Dropout", static=(1, 2))
def dropout(x: Any, ratio: float = 0.5, training: bool = False, *, seed: int = 0, outputs: int) -> Any:
    """x itself: the result in inference."""
    if training or outputs > 1:
        raise NotImplementedError("Dropout has a lowering for its first result in inference only")
    return x
