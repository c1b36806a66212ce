"""Algebraic rewrites. Each holds bit for bit, for every operand including NaN, infinities and the sign of zero."""

from collections.abc import Callable

import numpy as np

from miscompile.core.tensor import Array
from miscompile.targets.toy.ir import Bugs, Code, ToyCall
from miscompile.targets.toy.passes.rewriting import (
    all_equal,
    int64,
    kind_of,
    only_use,
    same_shape,
    swapped_pairs,
)


def _minus_zero(value: Array) -> bool:
    """x + 0.0 turns -0.0 into 0.0, so only -0.0 is neutral for floats."""
    return bool((value == 0).all()) and (value.dtype.kind != "f" or bool(np.signbit(value).all()))


def _plus_zero(value: Array) -> bool:
    return bool((value == 0).all()) and not (value.dtype.kind == "f" and bool(np.signbit(value).any()))


def _one(value: Array) -> bool:
    return bool((value == 1).all())


def _zero(value: Array) -> bool:
    return not value.any()


_NEUTRAL: dict[str, Callable[[Array], bool]] = {
    "Add": _minus_zero, "Mul": _one, "And": _one, "Or": _zero, "Xor": _zero, "BitwiseOr": _zero, "BitwiseXor": _zero,
}  # fmt: skip
_RIGHT_NEUTRAL: dict[str, Callable[[Array], bool]] = {"Sub": _plus_zero, "Div": _one, "Pow": _one, "BitShift": _zero}


def drop_neutral(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """x + 0, x * 1, x / 1 and similar calls become x, where x already has the shape of the result."""
    del bugs
    if call.op in _NEUTRAL:
        test, pairs = _NEUTRAL[call.op], swapped_pairs(call)
    elif call.op in _RIGHT_NEUTRAL:
        test, pairs = _RIGHT_NEUTRAL[call.op], swapped_pairs(call)[:1]
    else:
        return False
    for value, other in pairs:
        neutral = code.constant(other)
        if neutral is not None and neutral.size and test(neutral) and same_shape(code, value, call.out):
            code.bypass(call, value)
            return True
    return False


def absorb_zero(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """x * 0, x & 0 and x and false become zeros of the result's shape. Integers and bool only: inf * 0 is NaN."""
    shape = code.shape(call.out) if call.op in ("Mul", "BitwiseAnd", "And") else None
    if shape is None or kind_of(code, call.out) not in tuple("iub"):
        return False
    for name in call.inputs:
        zero = code.constant(name)
        if zero is None or not all_equal(zero, 0):
            continue
        code.bypass(
            call, name if "mul_zero_drops_broadcast" in bugs else code.add_constant(np.zeros(shape, zero.dtype))
        )
        return True
    return False


def cancel_self(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """x - x, x ^ x, x == x and x < x become constants. Subtraction and equality for integers and bool only."""
    if call.op not in ("Sub", "Xor", "BitwiseXor", "Equal", "Less", "Greater") or call.inputs[0] != call.inputs[1]:
        return False
    shape, dtype, kind = code.shape(call.out), code.dtype(call.out), kind_of(code, call.inputs[0])
    if shape is None or dtype is None or (call.op in ("Sub", "Equal") and kind not in tuple("iub")):
        return False
    if call.op == "Sub" and "sub_self_dtype" in bugs:
        dtype = np.dtype(np.int64)
    code.bypass(call, code.add_constant(np.full(shape, call.op == "Equal", dtype)))
    return True


def div_to_mul(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """x / c becomes x * (1/c) where c is a power of two, so that both round alike."""
    del bugs
    divisor = code.constant(call.inputs[1]) if call.op == "Div" else None
    if divisor is None or divisor.dtype.kind != "f" or not divisor.size or not np.isfinite(divisor).all():
        return False
    limits = np.finfo(divisor.dtype)
    with np.errstate(all="ignore"):
        inverse = np.asarray(1 / divisor).astype(divisor.dtype)
    exact = np.abs(np.frexp(divisor)[0]) == 0.5
    if not exact.all() or not np.isfinite(inverse).all() or (np.abs(inverse) < limits.tiny).any():
        return False
    code.swap(call, ToyCall("Mul", (call.inputs[0], code.add_constant(inverse)), call.outputs))
    return True


def reduce_strength(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Square instead of Pow 2, mask instead of Mod 2**k, shift instead of unsigned Div 2**k."""
    right = code.constant(call.inputs[1]) if call.op in ("Pow", "Mod", "Div") else None
    if right is None or not right.size:
        return False
    value, kind = call.inputs[0], kind_of(code, call.inputs[0])
    if call.op == "Pow":
        if not all_equal(right, 2) or not same_shape(code, value, call.out):
            return False
        code.swap(call, ToyCall("Mul", (value, value), call.outputs))
        return True
    if kind not in tuple("iu") or not _powers_of_two(right):
        return False
    if call.op == "Mod":
        # A truncating remainder has the sign of the dividend, a mask never has.
        if kind == "i" and call.get("fmod", 0) and "mod_as_bit_mask" not in bugs:
            return False
        mask = code.add_constant((right - right.dtype.type(1)).astype(right.dtype))
        code.swap(call, ToyCall("BitwiseAnd", (value, mask), call.outputs))
        return True
    # A shift rounds down, a signed division towards zero.
    if kind == "i" and "signed_div_as_shift" not in bugs:
        return False
    places = code.add_constant(np.log2(right.astype(np.float64)).astype(right.dtype))
    code.swap(call, ToyCall("BitShift", (value, places), call.outputs, {"direction": "RIGHT"}))
    return True


def _powers_of_two(value: Array) -> bool:
    return bool((value > 0).all()) and not (value & (value - value.dtype.type(1))).any()


def distribute(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """x * a + x * b becomes x * (a + b) for integers, because both are equal under wraparound."""
    del bugs
    if call.op != "Add" or kind_of(code, call.out) not in tuple("iu"):
        return False
    left, right = (code.made_by(name, "Mul") for name in call.inputs)
    if left is None or right is None or left is right or not all(only_use(code, name) for name in call.inputs):
        return False
    for common, first in swapped_pairs(left):
        for other, second in swapped_pairs(right):
            one, two = code.shape(first), code.shape(second)
            if common == other and one is not None and two is not None:
                total = code.fresh(code.dtype(call.out), tuple(np.broadcast_shapes(one, two)))
                code.swap(
                    call, ToyCall("Add", (first, second), (total,)), ToyCall("Mul", (common, total), call.outputs)
                )  # fmt: skip
                return True
    return False


def choose_constant(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Where becomes one of its values, expanded, when the condition is constant or both values are the same."""
    condition = code.constant(call.inputs[0]) if call.op == "Where" else None
    if call.op != "Where":
        return False
    if call.inputs[1] == call.inputs[2]:
        value = call.inputs[1]
    elif all_equal(condition, True) or all_equal(condition, False):
        value = call.inputs[1 if all_equal(condition, True) else 2]
    else:
        return False
    shape = code.shape(call.out)
    if same_shape(code, value, call.out) or "where_constant_no_expand" in bugs:
        code.bypass(call, value)
    elif shape is not None:
        code.swap(call, ToyCall("Expand", (value, code.add_constant(int64(shape))), call.outputs))
    else:
        return False
    return True
