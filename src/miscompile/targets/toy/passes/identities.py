"""Algebraic identities between two or three calls. Each holds bit for bit, for every operand."""

import numpy as np

from miscompile.core.tensor import Array
from miscompile.targets.toy.ir import Bugs, Code, ToyCall
from miscompile.targets.toy.kernels.elementwise import clip
from miscompile.targets.toy.passes.rewriting import all_equal, kind_of, only_use, same_shape, swapped_pairs

_INVOLUTIONS = ("Neg", "Not", "BitwiseNot")
_IDEMPOTENT = ("Relu", "Abs", "Floor", "Ceil", "Round", "Sign")
_SELF_IDEMPOTENT = ("Max", "Min", "And", "Or", "BitwiseAnd", "BitwiseOr")
_REASSOCIATED = {"Add": np.add, "Mul": np.multiply, "BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or}
_ADD_SUB = {"Add": "Sub", "Sub": "Add"}
_FLATTENED = ("Max", "Min", "Sum")


def cancel_involution(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """-(-x), not not x and ~~x become x."""
    del bugs
    inner = code.made_by(call.inputs[0], call.op) if call.op in _INVOLUTIONS else None
    if inner is None:
        return False
    code.bypass(call, inner.inputs[0])
    return True


def drop_repeated(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Relu(Relu(x)) and other functions that change nothing the second time become one call."""
    del bugs
    if call.op not in _IDEMPOTENT or code.made_by(call.inputs[0], call.op) is None:
        return False
    code.bypass(call, call.inputs[0])
    return True


def drop_self_operand(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """max(x, x), x and x, x | x become x."""
    del bugs
    if call.op not in _SELF_IDEMPOTENT or len(call.inputs) != 2 or call.inputs[0] != call.inputs[1]:
        return False
    code.bypass(call, call.inputs[0])
    return True


def turn_negated_operand(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """x + (-y) becomes x - y, and x - (-y) becomes x + y. The operand of Neg must be the second one of a Sub."""
    del bugs
    if call.op not in _ADD_SUB:
        return False
    for value, other in swapped_pairs(call)[: 2 if call.op == "Add" else 1]:
        negated = code.made_by(other, "Neg")
        if negated is not None:
            code.swap(call, ToyCall(_ADD_SUB[call.op], (value, negated.inputs[0]), call.outputs))
            return True
    return False


def reassociate_constants(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """(x + c) + d becomes x + (c + d) for integers, which wrap around; the same for products and masks."""
    del bugs
    if call.op not in _REASSOCIATED or kind_of(code, call.out) not in tuple("iu"):
        return False
    for value, other in swapped_pairs(call):
        inner, second = code.made_by(value, call.op), code.constant(other)
        if inner is None or second is None or not only_use(code, value):
            continue
        for operand, constant in swapped_pairs(inner):
            first = code.constant(constant)
            if first is not None:
                total = np.asarray(_REASSOCIATED[call.op](first, second))
                code.swap(call, ToyCall(call.op, (operand, code.add_constant(total)), call.outputs))
                return True
    return False


def multiply_by_minus_one(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """x * -1 becomes -x, where x already has the shape of the result; unsigned types have no -1."""
    del bugs
    if call.op != "Mul" or kind_of(code, call.out) not in ("i", "f"):
        return False
    for value, other in swapped_pairs(call):
        if all_equal(code.constant(other), -1) and same_shape(code, value, call.out):
            code.swap(call, ToyCall("Neg", (value,), call.outputs))
            return True
    return False


def _bound(code: Code, name: str) -> Array | None:
    """Return a constant bound that is a number."""
    value = code.constant(name) if name else None
    return None if value is None or value.size != 1 or bool(np.isnan(value).any()) else value


def merge_clips(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Clip(Clip(x)) becomes one Clip, where all bounds are constants and each lower one is at most its upper one."""
    del bugs
    inner = code.made_by(call.inputs[0], "Clip") if call.op == "Clip" else None
    if inner is None:
        return False
    low, high = _bound(code, inner.input(1)), _bound(code, inner.input(2))
    floor, top = _bound(code, call.input(1)), _bound(code, call.input(2))
    if low is None or high is None or floor is None or top is None or (low > high).any() or (floor > top).any():
        return False
    bounds = tuple(code.add_constant(clip(bound, floor, top).reshape(())) for bound in (low, high))
    code.swap(call, ToyCall("Clip", (inner.inputs[0], *bounds), call.outputs))
    return True


def flatten_variadic(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """max(max(x, y), z) becomes max(x, y, z). Floats are folded from the left, so there the inner call comes first."""
    del bugs
    if call.op not in _FLATTENED:
        return False
    places = range(len(call.inputs)) if kind_of(code, call.out) in tuple("iu") else range(1)
    for place in places:
        inner = code.made_by(call.inputs[place], call.op)
        if inner is not None and only_use(code, inner.out):
            inputs = (*call.inputs[:place], *inner.inputs, *call.inputs[place + 1 :])
            code.swap(call, ToyCall(call.op, inputs, call.outputs))
            return True
    return False


def multiply_by_shift(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """x * 2**k becomes x << k for unsigned integers, the only ones that BitShift takes."""
    del bugs
    if call.op != "Mul" or kind_of(code, call.out) != "u":
        return False
    for value, other in swapped_pairs(call):
        factor = code.constant(other)
        if (
            factor is None
            or not factor.size
            or not (factor > 1).all()
            or (factor & (factor - factor.dtype.type(1))).any()
        ):
            continue
        places = code.add_constant(np.log2(factor.astype(np.float64)).astype(factor.dtype))
        code.swap(call, ToyCall("BitShift", (value, places), call.outputs, {"direction": "LEFT"}))
        return True
    return False


def merge_shifts(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """(x << c) << d becomes x << (c + d), while the sum is less than the width of the type."""
    del bugs
    inner = code.made_by(call.inputs[0], "BitShift") if call.op == "BitShift" else None
    dtype = code.dtype(call.out)
    if inner is None or dtype is None or inner.get("direction") != call.get("direction"):
        return False
    first, second = code.constant(inner.inputs[1]), code.constant(call.inputs[1])
    if first is None or second is None:
        return False
    total = np.asarray(first.astype(np.int64) + second.astype(np.int64))
    if (total >= 8 * dtype.itemsize).any():
        return False
    places = code.add_constant(total.astype(dtype))
    code.swap(call, ToyCall("BitShift", (inner.inputs[0], places), call.outputs, call.attributes))
    return True
