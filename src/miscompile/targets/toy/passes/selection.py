"""The choice of kernels: calls become calls of specialised kernels that compute the same."""

from miscompile.targets.toy.ir import Bugs, Code, ToyCall
from miscompile.targets.toy.passes.rewriting import kind_of


def select_kernel(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Pick the Gather that skips the wrapping of indices, and the bitwise Or for bool."""
    if call.op == "Gather":
        indices = code.constant(call.inputs[1])
        safe = indices is not None and bool((indices >= 0).all())
        return _become(code, call, "CheckedGather") if safe or "checked_gather" in bugs else False
    if call.op == "Or":
        return _become(code, call, "OneBitAdd" if "bool_or_as_add" in bugs else "BitwiseOr")
    if call.op == "Sub" and "unsigned_sub_clamped" in bugs and kind_of(code, call.out) == "u":
        return _become(code, call, "ClampedSub")
    return False


def _become(code: Code, call: ToyCall, op: str) -> bool:
    code.swap(call, ToyCall(op, call.inputs, call.outputs, call.attributes))
    return True


_FAULTY = {
    "neg_reads_behind": ("Neg", "ReadingNeg"),
    "abs_writes_behind": ("Abs", "WritingAbs"),
    "sqrt_leaves_last": ("Sqrt", "LeavingSqrt"),
}
"""Calls that become calls of kernels with a fault of their memory, by the name of the fault."""


def lower(code: Code, bugs: Bugs) -> None:
    """Last step of every optimised build; it is not a pass, so no option switches it off.

    Has mean_by_reciprocal and the faults of memory.
    """
    _damage(code, bugs)
    if "mean_by_reciprocal" in bugs:
        for call in list(code.calls):
            if call.op == "ReduceMean" and kind_of(code, call.inputs[0]) in ("i", "u"):
                _become(code, call, "ReciprocalMean")


def _damage(code: Code, bugs: Bugs) -> None:
    """Faults of memory that are switched on."""
    chosen = dict(kernels for name, kernels in _FAULTY.items() if name in bugs)
    for call in list(code.calls):
        if call.op in chosen:
            _become(code, call, chosen[call.op])
