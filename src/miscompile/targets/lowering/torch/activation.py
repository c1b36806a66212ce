"""Activation functions."""

# ruff: noqa: ANN401 - tensors, and nested sequences of numbers

from typing import Any

import torch

from miscompile.targets.lowering.table import lowers
from miscompile.targets.lowering.torch.names import F

SELU = (1.67326319217681884765625, 1.05070102214813232421875)


relu = lowers("Relu")(lambda x: F.relu(x))
leaky_relu = lowers("LeakyRelu")(
    lambda x, *, alpha=0.01: F.leaky_relu(x, alpha)
)  # x, and alpha * x where x is negative


@lowers("PRelu")
def prelu(x: Any, slope: Any) -> Any:
    """x, and `slope` * x where x is negative; `slope` is broadcast to x."""
    if x.is_floating_point() and slope.numel() == 1 and x.dim() > 0:
        return F.prelu(x, slope.reshape(1))
    return torch.where(x < 0, x * slope, x)


elu = lowers("Elu")(lambda x, *, alpha=1.0: F.elu(x, alpha))


@lowers("Selu")
def selu(x: Any, *, alpha: float = SELU[0], gamma: float = SELU[1]) -> Any:
    """gamma * x, and gamma * alpha * (exp(x) - 1) where x is negative."""
    return F.selu(x) if (alpha, gamma) == SELU else gamma * F.elu(x, alpha)


celu = lowers("Celu")(
    lambda x, *, alpha=1.0: F.celu(x, alpha)
)  # x, and alpha * (exp(x / alpha) - 1) where x is negative
thresholded_relu = lowers("ThresholdedRelu")(lambda x, *, alpha=1.0: F.threshold(x, alpha, 0.0))
sigmoid = lowers("Sigmoid")(lambda x: torch.sigmoid(x))


@lowers("HardSigmoid")
def hard_sigmoid(x: Any, *, alpha: float = 0.2, beta: float = 0.5) -> Any:
    """alpha * x + beta, limited to [0, 1]."""
    return torch.clamp(alpha * x + beta, 0.0, 1.0)


hard_swish = lowers("HardSwish")(lambda x: F.hardswish(x))  # x * clamp(x / 6 + 1 / 2, 0, 1)


@lowers("Swish")
def swish(x: Any, *, alpha: float = 1.0) -> Any:
    """x * sigmoid(alpha * x)."""
    return F.silu(x) if alpha == 1 else x * torch.sigmoid(alpha * x)


swiglu = lowers("SwiGLU")(lambda a, b, *, alpha=1.0: swish(a, alpha=alpha) * b)  # the swish of the gate `a`, times `b`


@lowers("Softplus")
def softplus(x: Any) -> Any:
    """log(1 + exp(x)); x itself above 40, where both are equal even in float64."""
    return F.softplus(x, threshold=40.0)


softsign = lowers("Softsign")(lambda x: F.softsign(x))
gelu = lowers("Gelu")(lambda x, *, approximate="none": F.gelu(x, approximate=approximate))
mish = lowers("Mish")(lambda x: F.mish(x))


@lowers("Shrink")
def shrink(x: Any, *, bias: float = 0.0, lambd: float = 0.5) -> Any:
    """Zero where x is in [-lambd, lambd], else x moved towards zero by `bias`."""
    if x.is_floating_point() and bias in (0.0, lambd):
        return F.softshrink(x, lambd) if bias else F.hardshrink(x, lambd)
    outside = torch.where(x < -lambd, x + bias, torch.where(x > lambd, x - bias, torch.zeros_like(x)))
    return outside.to(x.dtype)


@lowers("Clip", plain=(1, 2))
def clip(x: Any, low: Any = None, high: Any = None) -> Any:
    """x limited to [low, high]; the result is `high` where `low` exceeds it."""
    if low is None and high is None:
        return x
    if isinstance(low, torch.Tensor) and isinstance(high, (int, float)):
        return torch.clamp_max(torch.clamp_min(x, low), high)
    if isinstance(high, torch.Tensor) and isinstance(low, (int, float)):
        return torch.clamp_max(torch.clamp_min(x, low), high)
    return torch.clamp(x, low, high)


@lowers("Softmax")
def softmax(x: Any, *, axis: int = -1) -> Any:
    """exp(x), divided by its sum along an axis."""
    return torch.softmax(x, dim=axis)


log_softmax = lowers("LogSoftmax")(lambda x, *, axis=-1: torch.log_softmax(x, dim=axis))


@lowers("Hardmax")
def hardmax(x: Any, *, axis: int = -1) -> Any:
    """One at the first largest element along an axis, else zero."""
    return torch.zeros_like(x).scatter(axis, x.argmax(axis, keepdim=True), 1)


@lowers("Dropout", static=(1, 2))
def dropout(x: Any, ratio: float = 0.5, training: bool = False, *, seed: int = 0, outputs: int) -> Any:
    """x itself, and a mask that keeps everything: the result in inference."""
    if training:
        raise NotImplementedError("Dropout in training has no lowering: it is random")
    result = F.dropout(x, training=False)
    return (result, torch.ones_like(x, dtype=torch.bool)) if outputs > 1 else result
