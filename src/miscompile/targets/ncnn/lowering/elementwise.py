"""Operators that work element by element; not division, whose results in the published package are not exact."""

# ruff: noqa: ANN401 - symbolic tensors, and nested sequences of numbers

from typing import Any

from miscompile.targets.lowering.table import lowers
from miscompile.targets.ncnn.tensors import paired, same, tensor

LOWEST = -3.40282347e38

absolute = lowers("Abs")(lambda x: same("UnaryOp", x, {0: 0}))
neg = lowers("Neg")(lambda x: same("UnaryOp", x, {0: 1}))
floor = lowers("Floor")(lambda x: same("UnaryOp", x, {0: 2}))
ceil = lowers("Ceil")(lambda x: same("UnaryOp", x, {0: 3}))
sqrt = lowers("Sqrt")(lambda x: same("UnaryOp", x, {0: 5}))
exp = lowers("Exp")(lambda x: same("UnaryOp", x, {0: 7}))
log = lowers("Log")(lambda x: same("UnaryOp", x, {0: 8}))
sin = lowers("Sin")(lambda x: same("UnaryOp", x, {0: 9}))
cos = lowers("Cos")(lambda x: same("UnaryOp", x, {0: 10}))
tan = lowers("Tan")(lambda x: same("UnaryOp", x, {0: 11}))
asin = lowers("Asin")(lambda x: same("UnaryOp", x, {0: 12}))
acos = lowers("Acos")(lambda x: same("UnaryOp", x, {0: 13}))
atan = lowers("Atan")(lambda x: same("UnaryOp", x, {0: 14}))
round_half_even = lowers("Round")(lambda x: same("UnaryOp", x, {0: 18}))
sign = lowers("Sign")(lambda x: same("UnaryOp", x, {0: 20}))
sinh = lowers("Sinh")(lambda x: same("UnaryOp", x, {0: 22}))
asinh = lowers("Asinh")(lambda x: same("UnaryOp", x, {0: 23}))
cosh = lowers("Cosh")(lambda x: same("UnaryOp", x, {0: 24}))
acosh = lowers("Acosh")(lambda x: same("UnaryOp", x, {0: 25}))
atanh = lowers("Atanh")(lambda x: same("UnaryOp", x, {0: 26}))
tanh = lowers("Tanh")(lambda x: same("TanH", x))
sigmoid = lowers("Sigmoid")(lambda x: same("Sigmoid", x))
erf = lowers("Erf")(lambda x: same("Erf", x))
relu = lowers("Relu")(lambda x: same("ReLU", x, {0: 0.0}))
leaky_relu = lowers("LeakyRelu")(lambda x, *, alpha=0.01: same("ReLU", x, {0: float(alpha)}))
elu = lowers("Elu")(lambda x, *, alpha=1.0: same("ELU", x, {0: float(alpha)}))
softplus = lowers("Softplus")(lambda x: same("Softplus", x))
mish = lowers("Mish")(lambda x: same("Mish", x))
hard_swish = lowers("HardSwish")(lambda x: same("HardSwish", x, {0: 1 / 6, 1: 0.5}))
selu = lowers("Selu")(
    lambda x, *, alpha=1.67326319217681884765625, gamma=1.05070102214813232421875: same(
        "SELU", x, {0: float(alpha), 1: float(gamma)}
    )
)
shrink = lowers("Shrink")(lambda x, *, bias=0.0, lambd=0.5: same("Shrink", x, {0: float(bias), 1: float(lambd)}))
gelu = lowers("Gelu")(lambda x, *, approximate="none": same("GELU", x, {0: int(approximate == "tanh")}))
identity = lowers("Identity")(lambda x: x)


@lowers("Celu")
def celu(x: Any, *, alpha: float = 1.0) -> Any:
    """x, and alpha * (exp(x / alpha) - 1) where x is negative."""
    if alpha <= 0:
        raise NotImplementedError("Celu has a lowering for positive alpha only")
    return same("CELU", x, {0: float(alpha)})


@lowers("HardSigmoid")
def hard_sigmoid(x: Any, *, alpha: float = 0.2, beta: float = 0.5) -> Any:
    """alpha * x + beta, limited to [0, 1]; ncnn divides by alpha to find the limits of x."""
    if alpha <= 0:
        raise NotImplementedError("HardSigmoid has a lowering for positive alpha only")
    return same("HardSigmoid", x, {0: float(alpha), 1: float(beta)})


add = lowers("Add")(lambda x, y: paired("add", x, y))
subtract = lowers("Sub")(lambda x, y: paired("sub", x, y))
multiply = lowers("Mul")(lambda x, y: paired("mul", x, y))


POWERS = {2.0: 4, 0.5: 5}
"""Exponents for which ncnn has a layer of one operand."""


@lowers("Pow")
def power(x: Any, y: Any) -> Any:
    """x to the constant power y; ncnn's own power is exp(y * log(x)), which is wrong for x = 0 and below."""
    number = None if y.array is None or y.array.size != 1 or len(y.shape) > len(x.shape) else float(y.array.item())
    if number not in POWERS:
        raise NotImplementedError("Pow has a lowering for the exponents 2 and 0.5 only")
    return same("UnaryOp", x, {0: POWERS[number]})


@lowers("Mod")
def modulo(x: Any, y: Any, *, fmod: int = 0) -> Any:
    """The remainder with the sign of x."""
    if not fmod:
        raise NotImplementedError("Mod has a lowering with the sign of the first operand only")
    return paired("fmod", x, y)


def folded(name: str, xs: Any) -> Any:
    """Return the result of a layer of two operands over all of `xs`."""
    result = xs[0]
    for x in xs[1:]:
        result = paired(name, result, x)
    return result


largest = lowers("Max")(lambda *xs: folded("max", xs))
smallest = lowers("Min")(lambda *xs: folded("min", xs))
total = lowers("Sum")(lambda *xs: folded("add", xs))


@lowers("Clip")
def clip(x: Any, low: Any = None, high: Any = None) -> Any:
    """x limited to [low, high]."""
    if all(end is None or end.array is not None for end in (low, high)):
        ends = [default if end is None else float(end.array.reshape(())) for end, default in
                ((low, LOWEST), (high, -LOWEST))]  # fmt: skip
        if ends[0] > ends[1]:  # ncnn does not say what its layer gives then
            ends[0] = ends[1]
        return same("Clip", x, dict(enumerate(ends)))
    x = x if low is None else paired("max", x, low)
    return x if high is None else paired("min", x, high)


@lowers("PRelu")
def prelu(x: Any, slope: Any) -> Any:
    """x, and slope * x where x is negative; the layer has one slope, or one for each place of the first axis."""
    array, sizes = slope.array, x.blob.sizes
    if array is not None and array.size == 1 and len(array.shape) <= len(x.shape):
        return same("PReLU", x, {0: 1}, [(array.reshape(-1), 1)])
    inner = sizes[0] > 1 and array is not None and array.size == sizes[0]
    if inner and slope.shape == (sizes[0], *[1] * (len(sizes) - 1)):
        return same("PReLU", x, {0: sizes[0]}, [(array.reshape(-1), 1)])
    zero = tensor(0)
    return paired("add", paired("max", x, zero), paired("mul", slope, paired("min", x, zero)))


@lowers("Dropout", static=(1, 2))
def dropout(x: Any, ratio: float = 0.5, training: bool = False, *, seed: int = 0, outputs: int) -> Any:
    """x itself: the result in inference."""
    if training or outputs > 1:
        raise NotImplementedError("Dropout has a lowering for its first result in inference only")
    return x
