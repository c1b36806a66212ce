"""The table of all kernels, the forms that they do not cover, and the function that runs a call."""

from collections.abc import Collection, Sequence

import numpy as np

from miscompile.core.tensor import Array
from miscompile.targets.toy.ir import Code, ToyCall, ToyUnsupported
from miscompile.targets.toy.kernels import elementwise, faulty, linear, movement, quantisation, reduction, tiled
from miscompile.targets.toy.kernels.elementwise import Args, Kernel


def interpret(code: Code, args: Args) -> list[Array | None]:
    """Run a program or a body on its operands; return its outputs, None for one that no call defines.

    A call with the attribute `into` writes its result over that operand. Raises the exceptions of kernels.
    """
    values: dict[str, Array] = dict(code.constants)
    values.update(zip(code.inputs, args, strict=True))
    for call in code.calls:
        results = evaluate(call, tuple(values[name] if name else None for name in call.inputs))
        into = call.get("into")
        if into:
            np.copyto(values[into], results[0])
            results = (values[into],)
        values.update(zip(call.outputs, results, strict=False))
    return [values.get(name) for name in code.outputs]


def _if(call: ToyCall, args: Args) -> tuple[Array, ...]:
    body = call.get("then_branch" if bool(args[0].reshape(())) else "else_branch")
    return tuple(np.asarray(value) for value in interpret(body, args[1:]) if value is not None)


def _loop(call: ToyCall, args: Args) -> Array:
    """Apply the steps of an ElementwiseLoop to a few elements at a time."""
    flat = args[0].reshape(-1)
    parts = []
    for begin, end in tiled.bounds(flat.size, tiled.LANES):
        part = flat[begin:end]
        for step in tiled.steps(call):
            (part,) = evaluate(step, (part,))
        parts.append(part)
    return np.concatenate(parts).reshape(args[0].shape) if parts else args[0].copy()


_TILED: dict[str, Kernel] = {
    "TiledMatMul": lambda _, args: tiled.tiled_product(args[0], args[1]),
    "BlockTranspose": lambda call, args: tiled.block_transposition(args[0], call.get("perm")),
    "TableLookup": lambda _, args: tiled.look_up(args[0], args[1]),
    "ElementwiseLoop": _loop,
}

KERNELS: dict[str, Kernel] = {
    "If": _if,
    **elementwise.KERNELS,
    **movement.KERNELS,
    **reduction.KERNELS,
    **linear.KERNELS,
    **quantisation.KERNELS,
    **_TILED,
    **faulty.KERNELS,
}

INTERNAL = frozenset({"CheckedGather", *_TILED, *faulty.KERNELS})
"""Operators that only passes write."""

REFERENCE_OPERATORS = tuple(sorted(set(KERNELS) - INTERNAL | {"Constant"}))
"""Operators of the standard domain that a model may use with the reference optimiser."""

OPERATORS = tuple(name for name in REFERENCE_OPERATORS if name not in {"If", *quantisation.KERNELS})
"""Operators of the standard domain that a model may use otherwise."""


def check_form(call: ToyCall, operators: Collection[str]) -> None:
    """Raise ToyUnsupported when the operator of `call` is not among `operators`, or the toy lacks the form of it."""
    if call.op not in operators:
        raise ToyUnsupported(call.op)
    if call.op == "BatchNormalization" and (call.get("training_mode", 0) or len(call.outputs) > 1):
        raise ToyUnsupported("BatchNormalization in training mode")
    if call.op == "MaxPool" and (len(call.outputs) > 1 or call.get("storage_order", 0)):
        raise ToyUnsupported("MaxPool with indices")
    if call.op in ("MaxPool", "AveragePool") and call.get("ceil_mode", 0):
        raise ToyUnsupported(f"{call.op} with ceil_mode")
    if call.op in ("QuantizeLinear", "DequantizeLinear") and call.get("block_size", 0):
        raise ToyUnsupported(f"{call.op} in blocks")
    if call.op == "Dropout" and call.input(2):
        raise ToyUnsupported("Dropout with a training_mode operand")


def evaluate(call: ToyCall, args: Args) -> tuple[Array, ...]:
    """Run `call` on its operands' arrays and return its outputs. Raises whatever numpy raises for bad operands."""
    with np.errstate(all="ignore"):
        found = KERNELS[call.op](call, args)
    outputs: Sequence[Array] = found if isinstance(found, tuple) else (found,)
    return tuple(np.asarray(output) for output in outputs)
