"""Elementwise kernels. Integers wrap around and division truncates. The sources are the ONNX operator pages."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from miscompile.core.tensor import Array
from miscompile.targets.toy.ir import ToyCall

Args = tuple[Any, ...]
"""The operands' arrays; None for a left-out optional one."""

Kernel = Callable[[ToyCall, Args], Any]
"""Computes the outputs of a call: one array, or a tuple of them. Never writes to its operands."""


def unary(function: Callable[[Array], Any]) -> Kernel:
    """Kernel of a function of one operand that keeps the element type."""
    return lambda _, args: np.asarray(function(args[0])).astype(args[0].dtype, copy=False)


def binary(function: Callable[[Array, Array], Any]) -> Kernel:
    """Kernel of a function of two operands with broadcasting."""
    return lambda _, args: function(args[0], args[1])


def variadic(function: Callable[[Array, Array], Any]) -> Kernel:
    """Kernel that folds any number of operands from the left."""

    def run(_: ToyCall, args: Args) -> Array:
        result = args[0]
        for arg in args[1:]:
            result = function(result, arg)
        return np.asarray(result)

    return run


def relu(x: Array) -> Array:
    """Return `x` with negative elements replaced by zero; NaN and the sign of zero are kept."""
    return np.where(x < 0, x.dtype.type(0), x)


def clip(x: Array, low: Array | None, high: Array | None) -> Array:
    """Bound `x` from below, then from above, by bounds of one element; NaN and the sign of zero are kept."""
    if low is not None:
        x = np.where(x < low.reshape(()), low.reshape(()), x)
    return x if high is None else np.where(x > high.reshape(()), high.reshape(()), x)


def divide(x: Array, y: Array) -> Array:
    """Divide; integers truncate towards zero (by zero: the element is zero)."""
    if x.dtype.kind == "f":
        return np.asarray(x / y)
    quotient = np.floor_divide(x, y)
    if x.dtype.kind == "i":
        inexact = (quotient * y != x) & ((x < 0) != (y < 0)) & (y != 0)
        quotient = quotient + inexact.astype(x.dtype)
    return np.asarray(quotient)


def _modulo(call: ToyCall, args: Args) -> Array:
    return np.asarray((np.fmod if call.get("fmod", 0) else np.mod)(args[0], args[1]))


def _power(_: ToyCall, args: Args) -> Array:
    base, exponent = args
    if base.dtype.kind != "f" and exponent.dtype.kind in "iu" and not (exponent < 0).any():
        exponent = exponent.astype(np.uint64 if base.dtype.kind == "u" else exponent.dtype)
        return np.asarray(np.power(base, exponent)).astype(base.dtype)
    wide = np.result_type(base.dtype, exponent.dtype, np.float32)
    return np.asarray(np.power(base.astype(wide), exponent.astype(wide))).astype(base.dtype)


def _shift(call: ToyCall, args: Args) -> Array:
    function = np.left_shift if call.get("direction") == "LEFT" else np.right_shift
    return np.asarray(function(args[0], args[1]))


def cast(x: Array, dtype: "np.dtype[Any]") -> Array:
    """Convert elements: integers wrap around, floats truncate, and any number but zero becomes true."""
    return x != 0 if dtype == np.bool_ else x.astype(dtype)


def sigmoid(x: Array) -> Array:
    """Logistic function."""
    one = x.dtype.type(1)
    return np.asarray(one / (one + np.exp(-x)))


def softplus(x: Array) -> Array:
    """Smooth maximum of `x` and zero."""
    return np.asarray(np.logaddexp(x, x.dtype.type(0)))


_ERF = np.frompyfunc(math.erf, 1, 1)


def erf(x: Array) -> Array:
    """Error function, computed in double precision."""
    return np.asarray(_ERF(x.astype(np.float64)), np.float64).reshape(x.shape).astype(x.dtype)


def _gelu(call: ToyCall, args: Args) -> Array:
    x, kind = args[0], args[0].dtype.type
    if call.get("approximate", "none") == "tanh":
        inner = np.tanh(kind(math.sqrt(2 / math.pi)) * (x + kind(0.044715) * x * x * x))
    else:
        inner = erf(np.asarray(x / kind(math.sqrt(2))))
    return np.asarray(kind(0.5) * x * (kind(1) + inner)).astype(x.dtype, copy=False)


def _scaled(default: float, function: Callable[[Array, Any], Any]) -> Kernel:
    """Kernel of an activation with one parameter `alpha`."""

    def run(call: ToyCall, args: Args) -> Array:
        x = args[0]
        return np.asarray(function(x, x.dtype.type(call.get("alpha", default)))).astype(x.dtype, copy=False)

    return run


def _selu(call: ToyCall, args: Args) -> Array:
    x = args[0]
    alpha = x.dtype.type(call.get("alpha", 1.67326319217681884765625))
    gamma = x.dtype.type(call.get("gamma", 1.05070102214813232421875))
    return np.asarray(gamma * np.where(x > 0, x, alpha * np.expm1(x))).astype(x.dtype, copy=False)


def _hard_sigmoid(call: ToyCall, args: Args) -> Array:
    x, kind = args[0], args[0].dtype.type
    line = kind(call.get("alpha", 0.2)) * x + kind(call.get("beta", 0.5))
    return clip(np.asarray(line), kind(0), kind(1)).astype(x.dtype, copy=False)


def _is_inf(call: ToyCall, args: Args) -> Array:
    positive, negative = call.get("detect_positive", 1), call.get("detect_negative", 1)
    infinite = np.isinf(args[0])
    return np.asarray(infinite & np.where(args[0] > 0, bool(positive), bool(negative)))


def _mean(call: ToyCall, args: Args) -> Array:
    total = _ADD(call, args)
    return np.asarray(total / args[0].dtype.type(len(args))).astype(args[0].dtype, copy=False)


_ADD = variadic(np.add)

KERNELS: dict[str, Kernel] = {
    "Abs": unary(np.abs), "Neg": unary(np.negative), "Sign": unary(np.sign), "Floor": unary(np.floor),
    "Ceil": unary(np.ceil), "Round": unary(np.rint), "Exp": unary(np.exp), "Log": unary(np.log),
    "Sqrt": unary(np.sqrt), "Reciprocal": unary(np.reciprocal), "Sin": unary(np.sin), "Cos": unary(np.cos),
    "Tan": unary(np.tan), "Asin": unary(np.arcsin), "Acos": unary(np.arccos), "Atan": unary(np.arctan),
    "Sinh": unary(np.sinh), "Cosh": unary(np.cosh), "Tanh": unary(np.tanh), "Asinh": unary(np.arcsinh),
    "Acosh": unary(np.arccosh), "Atanh": unary(np.arctanh), "Erf": unary(erf), "Not": unary(np.logical_not),
    "BitwiseNot": unary(np.invert), "Relu": unary(relu), "Sigmoid": unary(sigmoid), "Softplus": unary(softplus),
    "Softsign": unary(lambda x: x / (x.dtype.type(1) + np.abs(x))),
    "HardSwish": unary(lambda x: x * clip(x / x.dtype.type(6) + x.dtype.type(0.5), x.dtype.type(0), x.dtype.type(1))),
    "Mish": unary(lambda x: x * np.tanh(softplus(x))),
    "LeakyRelu": _scaled(0.01, lambda x, alpha: np.where(x < 0, alpha * x, x)),
    "Elu": _scaled(1.0, lambda x, alpha: np.where(x < 0, alpha * np.expm1(x), x)),
    "Celu": _scaled(1.0, lambda x, alpha: np.where(x < 0, alpha * np.expm1(x / alpha), x)),
    "ThresholdedRelu": _scaled(1.0, lambda x, alpha: np.where(x > alpha, x, x.dtype.type(0))),
    "Selu": _selu, "HardSigmoid": _hard_sigmoid, "Gelu": _gelu, "IsInf": _is_inf,
    "IsNaN": lambda _, args: np.isnan(args[0]),
    "Add": binary(np.add), "Sub": binary(np.subtract), "Mul": binary(np.multiply), "Div": binary(divide),
    "Mod": _modulo, "Pow": _power, "PRelu": lambda _, args: np.where(args[0] < 0, args[0] * args[1], args[0]),
    "And": binary(np.logical_and), "Or": binary(np.logical_or), "Xor": binary(np.logical_xor),
    "BitwiseAnd": binary(np.bitwise_and), "BitwiseOr": binary(np.bitwise_or), "BitwiseXor": binary(np.bitwise_xor),
    "BitShift": _shift, "Equal": binary(np.equal), "Less": binary(np.less), "LessOrEqual": binary(np.less_equal),
    "Greater": binary(np.greater), "GreaterOrEqual": binary(np.greater_equal),
    "Max": variadic(np.maximum), "Min": variadic(np.minimum), "Sum": _ADD, "Mean": _mean,
    "Where": lambda _, args: np.where(args[0], args[1], args[2]),
    "Clip": lambda _, args: clip(args[0], *(*args[1:], None, None)[:2]),
    "Cast": lambda call, args: cast(args[0], call.get("to")),
    "CastLike": lambda _, args: cast(args[0], args[1].dtype),
}  # fmt: skip
