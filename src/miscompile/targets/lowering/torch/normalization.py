"""Normalisation and losses."""

# ruff: noqa: ANN401 - tensors, and nested sequences of numbers

from typing import Any

import torch

from miscompile.targets.lowering.table import lowers
from miscompile.targets.lowering.torch.names import F


@lowers("BatchNormalization")
def batch_norm(
    x: Any,
    scale: Any,
    bias: Any,
    mean: Any,
    var: Any,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
    outputs: int,
) -> Any:
    """x normalised by the given mean and variance; in training mode by those of the batch, with updated moving ones."""
    kinds = {x.dtype, scale.dtype, bias.dtype, mean.dtype, var.dtype}
    wide = torch.float64 if torch.float64 in kinds else torch.float32
    if len(kinds) > 1:
        y, *moments = (z.to(wide) for z in (x, mean, var, scale, bias))
    else:
        y, *moments = x, mean, var, scale, bias
    if not training_mode:
        return F.batch_norm(y, *moments, eps=epsilon).to(x.dtype)
    dims = tuple([axis for axis in range(x.dim()) if axis != 1])
    now_var, now_mean = torch.var_mean(y, dims, correction=0)
    y = F.batch_norm(y, now_mean, now_var, *moments[2:], eps=epsilon).to(x.dtype)
    if outputs == 1:
        return y
    new_mean, new_var = (
        old * momentum + now * (1 - momentum) for old, now in zip(moments[:2], (now_mean, now_var), strict=True)
    )
    return y, new_mean.to(mean.dtype), new_var.to(var.dtype)


@lowers("InstanceNormalization")
def instance_norm(x: Any, scale: Any, bias: Any, *, epsilon: float = 1e-5) -> Any:
    """x with each channel of each image normalised by its own mean and variance."""
    if x.shape[0] == 0 or x.shape[2:].numel() == 1:  # which F.instance_norm refuses
        return torch.group_norm(x, x.shape[1], scale, bias, epsilon)
    return F.instance_norm(x, weight=scale, bias=bias, eps=epsilon)


@lowers("GroupNormalization")
def group_norm(
    x: Any, scale: Any, bias: Any, *, epsilon: float = 1e-5, num_groups: int, stash_type: str = "float32", opset: int
) -> Any:
    """Groups of channels normalised by their own mean and variance; before opset 21 there is one scale per group."""
    if opset < 21:
        share = x.shape[1] // num_groups
        scale, bias = torch.repeat_interleave(scale, share), torch.repeat_interleave(bias, share)
    return torch.group_norm(x, num_groups, scale, bias, epsilon)


@lowers("LayerNormalization")
def layer_norm(
    x: Any,
    scale: Any,
    bias: Any = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: str = "float32",
    outputs: int,
) -> Any:
    """The axes from `axis` on normalised together; on request also their mean and inverse standard deviation."""
    sizes = x.shape[axis:]
    bias = bias if bias is None else bias.expand(sizes)
    y = F.layer_norm(x, sizes, scale.expand(sizes), bias, epsilon)
    if outputs == 1:
        return y
    dims = tuple(range(x.dim()))[axis:]
    var, mean = torch.var_mean(x.to(torch.float32), dims, correction=0, keepdim=True)
    return (y, mean, torch.rsqrt(var + epsilon))[:outputs]


@lowers("RMSNormalization")
def rms_norm(x: Any, scale: Any, *, axis: int = -1, epsilon: float = 1e-5, stash_type: str = "float32") -> Any:
    """x divided by the root of the mean square over the axes from `axis` on."""
    sizes = x.shape[axis:]
    return F.rms_norm(x, sizes, scale.to(x.dtype).expand(sizes), epsilon).to(scale.dtype)


@lowers("LRN")
def local_response_norm(x: Any, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Any:
    """x over a power of the neighbouring channels' squares; of an even number of channels, torch takes more before."""
    if size % 2:
        return F.local_response_norm(x, size, alpha, beta, bias)
    return torch.flip(F.local_response_norm(torch.flip(x, (1,)), size, alpha, beta, bias), (1,))


lp_norm = lowers("LpNormalization")(lambda x, *, axis=-1, p=2: F.normalize(x, p, axis))


@lowers("MeanVarianceNormalization")
def mean_variance_norm(x: Any, *, axes: Any = (0, 2, 3)) -> Any:
    """x minus its mean, divided by its standard deviation."""
    var, mean = torch.var_mean(x, axes, correction=0, keepdim=True)
    return (x - mean) / (torch.sqrt(var) + 1e-9)


@lowers("NegativeLogLikelihoodLoss")
def nll_loss(x: Any, target: Any, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean") -> Any:
    """The negative log-likelihood loss of log-probabilities and target classes."""
    return F.nll_loss(x, target.to(torch.int64), weight, ignore_index=ignore_index, reduction=reduction)


@lowers("SoftmaxCrossEntropyLoss")
def cross_entropy(
    x: Any, target: Any, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean", outputs: int
) -> Any:
    """The cross-entropy loss of scores and target classes, and the log-probabilities."""
    loss = F.cross_entropy(x, target.to(torch.int64), weight, ignore_index=ignore_index, reduction=reduction)
    return (loss, torch.log_softmax(x, dim=1)) if outputs > 1 else loss
