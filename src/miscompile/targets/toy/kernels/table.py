"""The table of all kernels, the forms that they do not cover, and the function that runs a call."""

from collections.abc import Sequence

import numpy as np

from miscompile.core.tensor import Array
from miscompile.targets.toy.ir import ToyCall, ToyUnsupported
from miscompile.targets.toy.kernels import elementwise, faulty, linear, movement, reduction
from miscompile.targets.toy.kernels.elementwise import Args, Kernel

KERNELS: dict[str, Kernel] = {
    **elementwise.KERNELS,
    **movement.KERNELS,
    **reduction.KERNELS,
    **linear.KERNELS,
    **faulty.KERNELS,
}

INTERNAL = frozenset({"CheckedGather", *faulty.KERNELS})
"""Operators that only passes write."""

OPERATORS = tuple(sorted(set(KERNELS) - INTERNAL | {"Constant"}))
"""Operators of the standard domain that a model may use."""


def check_form(call: ToyCall) -> None:
    """Raise ToyUnsupported when the toy lacks the operator of `call`, or the form in which `call` uses it."""
    if call.op not in KERNELS or call.op in INTERNAL:
        raise ToyUnsupported(call.op)
    if call.op == "BatchNormalization" and (call.get("training_mode", 0) or len(call.outputs) > 1):
        raise ToyUnsupported("BatchNormalization in training mode")
    if call.op == "MaxPool" and (len(call.outputs) > 1 or call.get("storage_order", 0)):
        raise ToyUnsupported("MaxPool with indices")
    if call.op in ("MaxPool", "AveragePool") and call.get("ceil_mode", 0):
        raise ToyUnsupported(f"{call.op} with ceil_mode")
    if call.op == "Dropout" and call.input(2):
        raise ToyUnsupported("Dropout with a training_mode operand")


def evaluate(call: ToyCall, args: Args) -> tuple[Array, ...]:
    """Run `call` on its operands' arrays and return its outputs. Raises whatever numpy raises for bad operands."""
    with np.errstate(all="ignore"):
        found = KERNELS[call.op](call, args)
    outputs: Sequence[Array] = found if isinstance(found, tuple) else (found,)
    return tuple(np.asarray(output) for output in outputs)
