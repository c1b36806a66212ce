"""Rewrites of element types."""

from typing import Any

import numpy as np

from miscompile.targets.toy.ir import Bugs, Code, ToyCall
from miscompile.targets.toy.passes.rewriting import only_use


def lossless(source: "np.dtype[Any]", target: "np.dtype[Any]") -> bool:
    """Tell whether every value of `source` survives in `target` (numpy's safe cast lets int64 pass as float64)."""
    if source.kind in "iu" and target.kind == "f":
        return 8 * source.itemsize - (source.kind == "i") <= np.finfo(target).nmant + 1
    return bool(np.can_cast(source, target, "safe"))


def merge_casts(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Cast(Cast(x, a), b) becomes Cast(x, b) when a holds every value of x."""
    inner = code.made_by(call.inputs[0], "Cast") if call.op == "Cast" else None
    if inner is None:
        return False
    source = code.dtype(inner.inputs[0])
    if source is None or not (lossless(source, inner.get("to")) or _excused(source, inner.get("to"), call, bugs)):
        return False
    code.swap(call, ToyCall("Cast", inner.inputs[:1], call.outputs, call.attributes))
    return True


def _excused(source: "np.dtype[Any]", middle: "np.dtype[Any]", call: ToyCall, bugs: Bugs) -> bool:
    """Faults cast_chain_narrowing and cast_chain_bool: chains between integers count as lossless."""
    if source.kind not in "iu" or call.get("to").kind not in "iu":
        return False
    narrowing = middle.kind in "iu" and "cast_chain_narrowing" in bugs
    return narrowing or (middle.kind == "b" and "cast_chain_bool" in bugs)


def sink_cast(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Compute integer sums, differences and products in the narrower type that they are cast to.

    Both results are equal under wraparound. The pass never widens arithmetic, because the wraparound of the narrow
    type would be lost.
    """
    inner = code.made_by(call.inputs[0], "Add", "Sub", "Mul") if call.op == "Cast" else None
    source = code.dtype(call.inputs[0])
    if inner is None or source is None or not only_use(code, inner.out):
        return False
    target = call.get("to")
    if source.kind not in "iu" or target.kind not in "iu" or target.itemsize == source.itemsize:
        return False
    if target.itemsize > source.itemsize and "inlined_in_wider_type" not in bugs:
        return False
    casts = []
    for name in inner.inputs:
        narrow = code.fresh(target, code.shape(name))
        casts.append(ToyCall("Cast", (name,), (narrow,), {"to": target}))
    code.swap(call, *casts, ToyCall(inner.op, tuple(cast.out for cast in casts), call.outputs))
    return True
