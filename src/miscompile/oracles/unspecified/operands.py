"""The operands of an instance, whether they are tensors or numbers, and however the operator is called.

The rules of unspecified behaviour need them, because `x << 40` is as undefined with a number as with a tensor.
"""

import numpy as np

from miscompile.base.dtypes import DTYPES, DType
from miscompile.core.case import Feed
from miscompile.core.tensor import Array, Tensor
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn, Held, Value, leaves, tensor_of

_REFLECTED = ("__rlshift__", "__rrshift__", "__rpow__", "__rfloordiv__", "__rmod__")
"""Methods of Python whose operands are swapped."""


def operand(instance: Instance, place: int, *names: str, default: Value = None) -> Value:
    """Return the operand at `place`, or under one of `names`; `default` where it is absent."""
    called = instance.inputs if instance.form in ("module", "node") else instance.args
    if place < len(called):
        return called[place]
    words = instance.options if instance.form == "module" else instance.kwargs
    return next((words[name] for name in names if name in words), default)


def pair(instance: Instance) -> tuple[Value, Value]:
    """Return the left and the right operand of a binary operator."""
    left, right = operand(instance, 0, "input", "self", "x", "x1"), operand(instance, 1, "other", "exponent", "y", "x2")
    return (right, left) if instance.operator in _REFLECTED else (left, right)


def numbers(value: Value) -> Array | None:
    """Return the elements of a tensor, a number or a list of numbers as an array; None for anything else."""
    if isinstance(value, Held | Drawn):
        return None if tensor_of(value).dtype == "string" else tensor_of(value).numbers()
    if isinstance(value, list | tuple) and not all(isinstance(one, int | float) for one in leaves(value)):
        return None
    if not isinstance(value, int | float | list | tuple):
        return None
    try:
        return np.asarray(value)
    except (ValueError, OverflowError):  # lists of several lengths
        return None


def whole(value: Value) -> Array | None:
    """Return `numbers(value)` when they are integers, else None."""
    found = numbers(value)
    return found if found is not None and found.dtype.kind in "iu" else None


def common(*values: Value) -> DType | None:
    """Return the common integer type of `values`; None when there is none.

    A number takes the type of the tensor beside it, and in torch a tensor without dimensions does as well.
    """
    tensors = [tensor_of(value) for value in values if isinstance(value, Held | Drawn)]
    names = {one.dtype for one in [one for one in tensors if one.shape] or tensors}
    if any(DTYPES[name].kind not in ("int", "uint") for name in names):
        return None
    if len(names) > 1:
        names = {np.result_type(*(DTYPES[name].storage for name in names)).name}
    found = DTYPES[min(names, default="int64")]
    return found if found.kind in ("int", "uint") else None


def tensors_of(instance: Instance, feed: Feed) -> list[Tensor]:
    """Return the tensors that the operator takes: the feed, and the constants of the program."""
    called = (*instance.inputs, *instance.options.values())
    if instance.form != "module":
        called = (*called, *instance.args, *instance.kwargs.values())
    held = [leaf.tensor for value in called for leaf in leaves(value) if isinstance(leaf, Held)]
    fed = {id(one) for one in feed}
    return [*feed, *(one for one in held if id(one) not in fed)]
