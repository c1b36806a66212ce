"""Guards: operators in front of an operand that bring its elements into the domain of the next operator."""

import numpy as np

from miscompile.base.dtypes import DTYPES, is_float
from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Array, tensor
from miscompile.ops.spec import Call, Operand
from miscompile.producers.scope import Scope

_FLOAT_GUARDS = (
    ("Sigmoid",),
    ("Sin",),
    ("Cos",),
    ("Tanh",),
    ("Abs",),
    ("Relu",),
    ("Abs", "+1"),
    ("Sigmoid", "+1"),
    ("Softplus", "+1"),
)
_INTEGER_GUARDS = (("Abs",), ("Sign",), ("Abs", "+1"))


def guard(scope: Scope, operand: Operand, within: tuple[float, float]) -> Operand:
    """Return a value computed from `operand` with elements in `within`: by a fitting function, else by Clip.

    Raises RejectedDraft when no guard fits or the target supports none; the scope is then unchanged.
    """
    guards = _FLOAT_GUARDS if is_float(operand.dtype) else _INTEGER_GUARDS
    for steps in scope.rng.sample(guards, k=min(3, len(guards))):
        mark = scope.mark()
        try:
            result = operand
            for step in steps:
                result = _step(scope, result, step)
        except RejectedDraft:
            scope.rollback(mark)
            continue
        if result.facts.inside(*within):
            return result
        scope.rollback(mark)
    mark = scope.mark()
    try:
        return _clip(scope, operand, within)
    except RejectedDraft:
        scope.rollback(mark)
        raise


def _step(scope: Scope, operand: Operand, step: str) -> Operand:
    if step == "+1":
        return scope.call("Add", operand, scope.new_constant(tensor(np.ones((), np.int64), operand.dtype)))
    return scope.call(step, operand)


def _clip(scope: Scope, operand: Operand, within: tuple[float, float]) -> Operand:
    info = DTYPES[operand.dtype]
    lo, hi = max(within[0], info.low), min(within[1], info.high)
    if info.kind == "float":
        lo, hi = (lo if lo > info.low else hi - 8), (hi if hi < info.high else lo + 8)
        inner = (hi - lo) * 4 * info.eps
        lo, hi = lo + inner, hi - inner
    if lo > hi:
        raise RejectedDraft("no room for a Clip")
    low, high = (scope.new_constant(tensor(_scalar(value, operand.dtype), operand.dtype)) for value in (lo, hi))
    result = scope.apply(Call("Clip", (operand, low, high)))[0]
    if not result.facts.inside(*within):
        raise RejectedDraft("Clip does not reach the range")
    return result


def _scalar(value: float, dtype: str) -> Array:
    return np.asarray(value if is_float(dtype) else int(value))
