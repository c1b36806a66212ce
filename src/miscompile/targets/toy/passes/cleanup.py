"""Rewrites that depend little on operators: folding, merging, removing, ordering."""

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from miscompile.core.tensor import Array
from miscompile.targets.toy.ir import Bugs, Code, ToyCall, Type
from miscompile.targets.toy.kernels.table import evaluate
from miscompile.targets.toy.passes.costly import compare_triples
from miscompile.targets.toy.passes.rewriting import all_equal, same_shape

_LARGE = 1 << 16
"""Most elements of a folded constant, because larger ones cost too much memory."""

COMMUTATIVE = frozenset(
    {"Add", "Mul", "And", "Or", "Xor", "Equal", "BitwiseAnd", "BitwiseOr", "BitwiseXor"}
)  # fmt: skip


def fold_constants(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Compute a call whose operands are all constants, and the shape of a value whose shape is known."""
    args = _shape_only(code, call) or _constants(code, call)
    if args is None or not all(_small(code, name) for name in call.outputs):
        return False
    try:
        results = evaluate(call, _narrowed(args) if "folding_in_float32" in bugs else args)
    except (ValueError, IndexError, TypeError):
        return False  # the same call raises its error at run time
    for name, result in zip(call.outputs, results, strict=False):
        if name:
            known = code.dtype(name)
            code.constants[name] = result if known is None else result.astype(known, copy=False)
            code.types[name] = Type(code.constants[name].dtype, tuple(result.shape))
    code.swap_out(call)
    return True


def _constants(code: Code, call: ToyCall) -> tuple[Any, ...] | None:
    if not any(call.inputs):
        return None
    args = tuple(code.constant(name) if name else None for name in call.inputs)
    return None if any(arg is None and name for arg, name in zip(args, call.inputs, strict=True)) else args


def _shape_only(code: Code, call: ToyCall) -> tuple[Any, ...] | None:
    shape = code.shape(call.inputs[0]) if call.op in ("Shape", "Size") else None
    return None if shape is None else (np.broadcast_to(np.zeros((), np.bool_), shape),)


def _small(code: Code, name: str) -> bool:
    shape = code.shape(name)
    return not name or shape is None or int(np.prod(shape, dtype=np.int64)) <= _LARGE


def _narrowed(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Fault folding_in_float32: double precision operands become single precision ones."""
    return tuple(arg.astype(np.float32) if arg is not None and arg.dtype == np.float64 else arg for arg in args)


def merge_common(code: Code, bugs: Bugs) -> bool:
    """Let equal constants, and equal calls on equal operands, share one value."""
    compare_triples(code, bugs)
    changed = _merge_constants(code)
    seen: dict[Hashable, ToyCall] = {}
    index = 0
    while index < len(code.calls):
        call = code.calls[index]
        attributes = () if "cse_ignores_attributes" in bugs else frozen(call)
        key = (call.op, call.inputs, attributes, tuple(map(bool, call.outputs)))
        first = seen.setdefault(key, call)
        if first is call:
            index += 1
            continue
        for old, new in zip(call.outputs, first.outputs, strict=True):
            if old:
                code.rename(old, new)
        code.retain([other for other in code.calls if other.outputs != call.outputs])
        changed = True
    return changed


def _merge_constants(code: Code) -> bool:
    seen: dict[Hashable, str] = {}
    changed = False
    for name in list(code.constants):
        value = code.constants[name]
        first = seen.setdefault((value.dtype.str, value.shape, value.tobytes()), name)
        if first != name and code.uses(name):
            code.rename(name, first)
            changed = True
    return changed


def frozen(call: ToyCall) -> Hashable:
    """Return the attributes of a call in a form that can be compared."""
    return tuple(sorted((name, _hashable(value)) for name, value in call.attributes.items()))


def _hashable(value: Any) -> Hashable:  # noqa: ANN401 - an attribute has any type
    if isinstance(value, Code):
        return _canonical(value)
    return f"{value.dtype}{value.shape}{value.tobytes()!r}" if isinstance(value, np.ndarray) else repr(value)


def same_code(first: Code, second: Code) -> bool:
    """Tell whether two bodies are the same calls in the same order, whatever their values are called."""
    return _canonical(first) == _canonical(second)


def _canonical(code: Code) -> Hashable:
    """Return the calls and outputs of a body with numbers in place of names, and elements in place of constants."""
    names: dict[str, Hashable] = {"": ""}
    names.update((name, place) for place, name in enumerate(code.inputs))
    names.update((name, (value.dtype.str, value.shape, value.tobytes())) for name, value in code.constants.items())
    calls = []
    for call in code.calls:
        names.update((name, len(names)) for name in call.outputs if name)
        calls.append(
            (call.op, tuple(names[name] for name in call.inputs), tuple(map(bool, call.outputs)), frozen(call))
        )
    return tuple(calls), tuple(names[name] for name in code.outputs)


def remove_dead(code: Code, bugs: Bugs) -> bool:
    """Remove every call whose values reach no graph output."""
    del bugs
    live = set(code.outputs)
    kept: list[ToyCall] = []
    for call in reversed(code.calls):
        if live.intersection(call.outputs):
            live.update(call.inputs)
            kept.append(call)
    changed = len(kept) < len(code.calls)
    if changed:
        code.retain(kept[::-1])
    return changed


def drop_identity(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Bypass Identity, Dropout in inference, and n-ary operators with one operand."""
    del bugs
    single = call.op in ("Concat", "Sum", "Max", "Min", "Mean") and len(call.inputs) == 1
    dropout = call.op == "Dropout" and not (len(call.outputs) > 1 and code.uses(call.outputs[1]))
    if not (call.op == "Identity" or single or dropout):
        return False
    code.bypass(call, call.inputs[0])
    return True


def drop_no_op(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Bypass casts, transposes, reshapes, expansions, paddings and tilings that change nothing."""
    del bugs
    if call.op not in _NO_OPS or not _NO_OPS[call.op](code, call):
        return False
    code.bypass(call, call.inputs[0])
    return True


def _stays(code: Code, call: ToyCall) -> bool:
    return same_shape(code, call.inputs[0], call.out)


def _all(code: Code, name: str, number: int) -> bool:
    value: Array | None = code.constant(name)
    return all_equal(value, number)


_NO_OPS: dict[str, Callable[[Code, ToyCall], bool]] = {
    "Cast": lambda code, call: bool(code.dtype(call.inputs[0]) == call.get("to")),
    "CastLike": lambda code, call: None is not code.dtype(call.inputs[0]) == code.dtype(call.inputs[1]),
    "Transpose": lambda code, call: call.get("perm") is not None and sorted(call.get("perm")) == list(call.get("perm")),
    "Reshape": _stays,
    "Expand": _stays,
    "Pad": lambda code, call: _all(code, call.inputs[1], 0),
    "Tile": lambda code, call: _all(code, call.inputs[1], 1),
}


def order_operands(code: Code, bugs: Bugs) -> bool:
    """Sort the operands of commutative calls: in order of definition, constants last."""
    ops = COMMUTATIVE | {"Sub"} if "sub_commutes" in bugs else COMMUTATIVE
    place = {name: i for i, name in enumerate((*code.inputs, *(out for call in code.calls for out in call.outputs)))}
    calls = []
    for call in code.calls:
        if call.op in ops:
            _rank_entry(code, call, bugs)
            ordered = tuple(sorted(call.inputs, key=lambda name: (name in code.constants, place.get(name, -1), name)))
            calls.append(call if ordered == call.inputs else ToyCall(call.op, ordered, call.outputs, call.attributes))
        else:
            calls.append(call)
    changed = any(new is not old for new, old in zip(calls, code.calls, strict=True))
    if changed:
        code.retain(calls)
    return changed


def _rank_entry(code: Code, call: ToyCall, bugs: Bugs) -> None:
    """Fault rank0_key_error: a table by rank that begins at one. Raises KeyError for an operand of rank 0."""
    if "rank0_key_error" in bugs:
        table = {rank: rank for rank in range(1, 16)}
        for name in call.inputs:
            rank = code.rank(name)
            if rank is not None:
                table[rank] += 1
