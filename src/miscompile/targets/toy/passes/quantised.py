"""Rewrites of quantised programs."""

import numpy as np

from miscompile.core.tensor import Array
from miscompile.targets.toy.ir import Bugs, Code, ToyCall
from miscompile.targets.toy.kernels.table import evaluate
from miscompile.targets.toy.passes.rewriting import only_use

_MOVING = ("Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Slice", "Expand", "Tile")
_TABULATED = ("Relu", "Abs", "Neg", "Sigmoid", "Tanh", "Exp", "Floor", "Ceil", "Round", "Sqrt", "Sin", "Cos", "Erf",
              "LeakyRelu", "Elu", "Softsign", "HardSigmoid")  # fmt: skip


def _scale_of(code: Code, call: ToyCall) -> Array | None:
    """Return the scale of a quantising call if it is one constant number for the whole tensor."""
    scale = code.constant(call.inputs[1])
    return None if scale is None or scale.size != 1 else scale


def _same_grid(code: Code, first: ToyCall, second: ToyCall) -> bool:
    """Tell whether two quantising calls have one scale and one zero point, of one type."""
    for place in (1, 2):
        one, two = first.input(place), second.input(place)
        if one == two:
            continue
        a, b = code.constant(one), code.constant(two)
        if a is None or b is None or a.dtype != b.dtype or a.size != 1 or b.size != 1 or a.reshape(()) != b.reshape(()):
            return False
    return True


def cancel_requantisation(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Quantize(Dequantize(x)) on one grid becomes x, for types of 8 bits and a scale of ordinary size.

    Division undoes the multiplication up to rounding, far less than half a step, so the nearest integer is x again.
    """
    del bugs
    inner = code.made_by(call.inputs[0], "DequantizeLinear") if call.op == "QuantizeLinear" else None
    dtype, scale = code.dtype(call.out), _scale_of(code, inner) if inner is not None else None
    if inner is None or scale is None or dtype is None or code.dtype(inner.inputs[0]) != dtype:
        return False
    if dtype.itemsize != 1 or scale.dtype != np.float32 or not 1e-30 < abs(float(scale.reshape(()))) < 1e30:
        return False
    if not _same_grid(code, inner, call):
        return False
    code.bypass(call, inner.inputs[0])
    return True


def move_before_dequantisation(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Transpose(Dequantize(x)) becomes Dequantize(Transpose(x)), so that bytes are moved instead of floats."""
    del bugs
    inner = code.made_by(call.inputs[0], "DequantizeLinear") if call.op in _MOVING else None
    if inner is None or _scale_of(code, inner) is None or not only_use(code, inner.out):
        return False
    moved = code.fresh(code.dtype(inner.inputs[0]), code.shape(call.out))
    code.swap(
        call,
        ToyCall(call.op, (inner.inputs[0], *call.inputs[1:]), (moved,), call.attributes),
        ToyCall("DequantizeLinear", (moved, *inner.inputs[1:]), call.outputs, inner.attributes),
    )
    return True


def drop_relu_before_quantisation(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Quantize(Relu(x)) becomes Quantize(x) when the zero point is the least number: all below it saturates."""
    del bugs
    relu = code.made_by(call.inputs[0], "Relu") if call.op == "QuantizeLinear" else None
    dtype, scale = code.dtype(call.out), _scale_of(code, call) if relu is not None else None
    if relu is None or dtype is None or scale is None or not (scale > 0).all():
        return False
    zero = code.constant(call.input(2)) if call.input(2) else np.zeros((), dtype)
    if zero is None or (zero != np.iinfo(dtype).min).any():
        return False
    code.swap(call, ToyCall(call.op, (relu.inputs[0], *call.inputs[1:]), call.outputs, call.attributes))
    return True


def tabulate(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Quantize(f(Dequantize(x))) for types of 8 bits becomes a look-up of all 256 results."""
    del bugs
    middle = code.made_by(call.inputs[0], *_TABULATED) if call.op == "QuantizeLinear" else None
    inner = code.made_by(middle.inputs[0], "DequantizeLinear") if middle is not None else None
    if middle is None or inner is None:
        return False
    source, result = code.dtype(inner.inputs[0]), code.dtype(call.out)
    if source is None or result is None or source.itemsize != 1 or source.kind not in "iu":
        return False
    parameters = [[code.constant(name) if name else None for name in one.inputs[1:]] for one in (inner, call)]
    for one, values in zip((inner, call), parameters, strict=True):
        if any(value is None and name for value, name in zip(values, one.inputs[1:], strict=True)):
            return False
        if any(value is not None and value.size != 1 for value in values):
            return False
    limits = np.iinfo(source)
    every: Array = np.arange(limits.min, limits.max + 1).astype(source)
    (real,) = evaluate(inner, (every, *(value.reshape(()) for value in parameters[0] if value is not None)))
    (image,) = evaluate(middle, (real,))
    if not np.isfinite(image).all():
        return False
    (table,) = evaluate(call, (image, *(value.reshape(()) for value in parameters[1] if value is not None)))
    code.swap(call, ToyCall("TableLookup", (inner.inputs[0], code.add_constant(table)), call.outputs))
    return True
