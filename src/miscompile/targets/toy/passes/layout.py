"""Rewrites of calls that only move elements."""

import numpy as np

from miscompile.targets.toy.ir import Bugs, Code, ToyCall
from miscompile.targets.toy.kernels.movement import normalized, slices
from miscompile.targets.toy.passes.rewriting import int64, integers, only_use, reshape_to

ELEMENTWISE = frozenset(
    {
        "Abs", "Neg", "Sign", "Floor", "Ceil", "Round", "Exp", "Sqrt", "Sin", "Cos", "Tanh", "Relu", "Sigmoid", "Not",
        "Erf", "Cast", "LeakyRelu", "Elu", "Atan", "Softsign",
    }
)  # fmt: skip
BROADCASTING = frozenset(
    {
        "Add", "Sub", "Mul", "Div", "And", "Or", "Xor", "Less", "Greater", "Equal", "BitwiseAnd", "BitwiseOr",
        "BitwiseXor", "LessOrEqual", "GreaterOrEqual", "Max", "Min", "Mod",
    }
)  # fmt: skip
_RESHAPES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")


def permutation(code: Code, call: ToyCall) -> tuple[int, ...] | None:
    """Return the permutation of a Transpose; None when it is left out and the rank is unknown."""
    perm, rank = call.get("perm"), code.rank(call.inputs[0])
    if perm is not None:
        return tuple(perm)
    return None if rank is None else tuple(reversed(range(rank)))


def compose_transposes(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Transpose(Transpose(x)) becomes one Transpose, or x when the second undoes the first."""
    inner = code.made_by(call.inputs[0], "Transpose") if call.op == "Transpose" else None
    if inner is None:
        return False
    first, second = permutation(code, inner), permutation(code, call)
    if first is None or second is None:
        return False
    both = tuple(first[axis] for axis in second)
    if both == tuple(range(len(both))) or "transpose_pair_not_inverse" in bugs:
        code.bypass(call, inner.inputs[0])
    else:
        code.swap(call, ToyCall("Transpose", inner.inputs, call.outputs, {"perm": both}))
    return True


def push_transpose(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Move Transposes behind an elementwise call, so that they meet others."""
    del bugs
    if call.op in ELEMENTWISE:
        sources = [code.made_by(call.inputs[0], "Transpose")]
    elif call.op in BROADCASTING and len(call.inputs) == 2:
        sources = [code.made_by(name, "Transpose") for name in call.inputs]
    else:
        return False
    perms, operands, widest = set(), [], 0
    for name, source in zip(call.inputs, sources, strict=True):
        value = code.constant(name)
        if source is not None and only_use(code, name):
            perms.add(permutation(code, source))
            operands.append(source.inputs[0])
        elif value is not None and value.size == 1:
            operands.append(name)
            widest = max(widest, value.ndim)
        else:
            return False
    shapes = [code.shape(name) for name in operands]
    perm = perms.pop() if len(perms) == 1 else None
    # Broadcasting lines up the last axes, so every operand must have the permutation's rank.
    if perm is None or None in shapes or widest > len(perm):
        return False
    inner = code.fresh(code.dtype(call.out), np.broadcast_shapes(*(shape for shape in shapes if shape is not None)))
    moved = ToyCall(call.op, tuple(operands), (inner,), call.attributes)
    code.swap(call, moved, ToyCall("Transpose", (inner,), call.outputs, {"perm": perm}))
    return True


def merge_reshapes(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Reshape(Reshape(x)) becomes one Reshape. A 0 entry copies a size of the inner result, so it is resolved first."""
    inner = code.made_by(call.inputs[0], "Reshape") if call.op == "Reshape" else None
    wanted = integers(code.constant(call.inputs[1])) if inner is not None else None
    if inner is None or wanted is None:
        return False
    shape = code.shape(call.out)
    if "reshape_merge_zero" in bugs or (0 not in wanted and not call.get("allowzero", 0)):
        code.swap(call, ToyCall("Reshape", (inner.inputs[0], call.inputs[1]), call.outputs, call.attributes))
    elif shape is not None:
        code.swap(call, reshape_to(code, inner.inputs[0], shape, call.out))
    else:
        return False
    return True


def clean_shapes(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Any chain of Reshape, Flatten, Squeeze and Unsqueeze becomes one Reshape to the known result."""
    if merge_reshapes(code, call, bugs):
        return True
    inner = code.made_by(call.inputs[0], *_RESHAPES) if call.op in _RESHAPES else None
    shape = code.shape(call.out)
    if inner is None or shape is None:
        return False
    code.swap(call, reshape_to(code, inner.inputs[0], shape, call.out))
    return True


def constant_slices(code: Code, call: ToyCall, rank: int) -> dict[int, slice] | None:
    """Return the Python slice of each axis that a Slice names; None unless all of its operands are constants."""
    operands = [code.constant(name) if name else None for name in (*call.inputs[1:], "", "")[:4]]
    starts, ends, axes, steps = operands
    missing = any(value is None and name for value, name in zip(operands, call.inputs[1:], strict=False))
    if starts is None or ends is None or missing:
        return None
    return slices(starts, ends, axes, steps, rank)


def merge_slices(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Slice(Slice(x)) becomes one Slice, where all bounds are constant and all steps positive."""
    inner = code.made_by(call.inputs[0], "Slice") if call.op == "Slice" else None
    source = code.shape(inner.inputs[0]) if inner is not None else None
    middle = code.shape(call.inputs[0])
    if inner is None or source is None or middle is None:
        return False
    first, second = constant_slices(code, inner, len(source)), constant_slices(code, call, len(source))
    if first is None or second is None:
        return False
    steps = [bounds.step for bounds in (*first.values(), *second.values())]
    if min(steps, default=1) < 0 and "slice_merge_negative_step" not in bugs:
        return False
    whole = slice(0, 2**62, 1)
    rows = []
    for axis in sorted({*first, *second}):
        start, _, step = normalized(first.get(axis, whole), source[axis])
        offset, count, stride = normalized(second.get(axis, whole), middle[axis])
        begin, jump = (start + step * offset, step * stride) if count else (0, 1)
        rows.append((axis, begin, begin + (count - 1) * jump + 1 if count else 0, jump))
    names = [code.add_constant(int64(tuple(row[i] for row in rows))) for i in (1, 2, 0, 3)]
    code.swap(call, ToyCall("Slice", (inner.inputs[0], *names), call.outputs))
    return True


def undo_split(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Concat of all parts of one Split, in order and on the same axis, becomes the operand of the Split."""
    source = code.producer(call.inputs[0]) if call.op == "Concat" else None
    if source is None or source.op != "Split":
        return False
    rank = code.rank(source.inputs[0])
    if rank is None or call.get("axis") % rank != source.get("axis", 0) % rank:
        return False
    ordered = call.inputs == source.outputs
    if not ordered and not ("concat_split_order" in bugs and sorted(call.inputs) == sorted(source.outputs)):
        return False
    code.bypass(call, source.inputs[0])
    return True


def drop_expand(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Remove an Expand before a binary call that broadcasts to the same shape."""
    del bugs
    if call.op not in BROADCASTING or len(call.inputs) != 2:
        return False
    for index, name in enumerate(call.inputs):
        source, other = code.made_by(name, "Expand"), code.shape(call.inputs[1 - index])
        small = code.shape(source.inputs[0]) if source is not None else None
        if source is None or small is None or other is None:
            continue
        if np.broadcast_shapes(small, other) == code.shape(call.out):
            inputs = list(call.inputs)
            inputs[index] = source.inputs[0]
            code.swap(call, ToyCall(call.op, tuple(inputs), call.outputs, call.attributes))
            return True
    return False
