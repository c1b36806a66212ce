"""Rewrites of calls that move, repeat or drop elements, and of their neighbours. All keep every bit."""

from collections.abc import Sequence

import numpy as np

from miscompile.core.tensor import Array
from miscompile.targets.toy.ir import Bugs, Code, ToyCall, ToyShape
from miscompile.targets.toy.kernels.movement import normalized
from miscompile.targets.toy.passes.layout import constant_slices, permutation
from miscompile.targets.toy.passes.rewriting import (
    all_equal,
    int64,
    integers,
    kind_of,
    only_use,
    reduced_axes,
    reshape_to,
    same_shape,
)

_REDUCTIONS = ("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin")
_UNIT_REDUCTIONS = (*_REDUCTIONS, "ReduceMean")


def push_transpose_through_reduction(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Reduce(Transpose(x)) becomes Transpose(Reduce(x)). Sums of floats would round in another order."""
    del bugs
    source = code.made_by(call.inputs[0], "Transpose") if call.op in _REDUCTIONS else None
    perm = permutation(code, source) if source is not None else None
    if source is None or perm is None or call.get("keepdims", 1) != 1 or not only_use(code, source.out):
        return False
    if kind_of(code, call.out) == "f" and call.op in ("ReduceSum", "ReduceProd"):
        return False
    axes, shape = reduced_axes(code, call, len(perm)), code.shape(source.inputs[0])
    if axes is None or shape is None:
        return False
    moved = tuple(sorted(perm[axis] for axis in axes))
    inner = code.fresh(code.dtype(call.out), tuple(1 if axis in moved else size for axis, size in enumerate(shape)))
    reduce = ToyCall(call.op, (source.inputs[0], code.add_constant(int64(moved))), (inner,), {"keepdims": 1})
    code.swap(call, reduce, ToyCall("Transpose", (inner,), call.outputs, {"perm": perm}))
    return True


def push_transpose_through_concat(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Concat of Transposes becomes one Transpose of a Concat, when all permutations are the same."""
    del bugs
    sources = [code.made_by(name, "Transpose") for name in call.inputs] if call.op == "Concat" else []
    known = [source for source in sources if source is not None and only_use(code, source.out)]
    if len(known) < 2 or len(known) < len(call.inputs):
        return False
    perms = {permutation(code, source) for source in known}
    perm = perms.pop() if len(perms) == 1 else None
    shapes = [code.shape(source.inputs[0]) for source in known]
    sizes = [shape for shape in shapes if shape is not None]
    if perm is None or len(sizes) < len(shapes):
        return False
    axis = perm[call.get("axis") % len(perm)]
    inner = code.fresh(code.dtype(call.out), _joined(sizes, axis))
    concat = ToyCall("Concat", tuple(source.inputs[0] for source in known), (inner,), {"axis": axis})
    code.swap(call, concat, ToyCall("Transpose", (inner,), call.outputs, {"perm": perm}))
    return True


def _joined(shapes: Sequence[ToyShape], axis: int) -> ToyShape:
    total = sum(shape[axis] for shape in shapes)
    return (*shapes[0][:axis], total, *shapes[0][axis + 1 :])


def reshape_for_transpose(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """A Transpose that keeps the order of all axes longer than one becomes a Reshape."""
    del bugs
    perm = permutation(code, call) if call.op == "Transpose" else None
    shape, result = code.shape(call.inputs[0]), code.shape(call.out)
    if perm is None or shape is None or result is None:
        return False
    long = [axis for axis in perm if shape[axis] != 1]
    if long != sorted(long):
        return False
    code.swap(call, reshape_to(code, call.inputs[0], result, call.out))
    return True


def flatten_concat(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Concat(x, Concat(y, z)) along one axis becomes Concat(x, y, z)."""
    del bugs
    rank = code.rank(call.out) if call.op == "Concat" else None
    if rank is None:
        return False
    for place, name in enumerate(call.inputs):
        inner = code.made_by(name, "Concat")
        if inner is not None and only_use(code, name) and inner.get("axis") % rank == call.get("axis") % rank:
            inputs = (*call.inputs[:place], *inner.inputs, *call.inputs[place + 1 :])
            code.swap(call, ToyCall("Concat", inputs, call.outputs, call.attributes))
            return True
    return False


def drop_whole_slice(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """A Slice that takes every element in order becomes its operand."""
    del bugs
    shape = code.shape(call.inputs[0]) if call.op == "Slice" else None
    bounds = constant_slices(code, call, len(shape)) if shape is not None else None
    if shape is None or bounds is None:
        return False
    if any(normalized(part, shape[axis]) != (0, shape[axis], 1) for axis, part in bounds.items()):
        return False
    code.bypass(call, call.inputs[0])
    return True


def _indices(code: Code, call: ToyCall, size: int) -> Array | None:
    """Return constant indices of one axis, counted from its begin."""
    value = code.constant(call.inputs[1])
    if value is None or value.ndim != 1 or not value.size:
        return None
    return np.where(value < 0, value + size, value).astype(np.int64)


def gather_as_slice(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Gather of constant indices that follow each other becomes a Slice."""
    del bugs
    shape = code.shape(call.inputs[0]) if call.op == "Gather" else None
    if not shape:
        return False
    axis = call.get("axis", 0) % len(shape)
    indices = _indices(code, call, shape[axis])
    if indices is None or (np.diff(indices) != 1).any() or indices[0] < 0 or indices[-1] >= shape[axis]:
        return False
    bounds = [code.add_constant(int64((int(value),))) for value in (indices[0], indices[-1] + 1, axis)]
    code.swap(call, ToyCall("Slice", (call.inputs[0], *bounds), call.outputs))
    return True


def merge_gathers(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Gather(Gather(x, i), j) along one axis becomes Gather(x, i[j]), where i and j are constants."""
    del bugs
    inner = code.made_by(call.inputs[0], "Gather") if call.op == "Gather" else None
    shape = code.shape(inner.inputs[0]) if inner is not None else None
    if inner is None or not shape:
        return False
    axis = inner.get("axis", 0) % len(shape)
    first = _indices(code, inner, shape[axis])
    if first is None or call.get("axis", 0) % len(shape) != axis:
        return False
    second = _indices(code, call, len(first))
    if second is None or (second < 0).any() or (second >= len(first)).any():
        return False
    code.swap(
        call, ToyCall("Gather", (inner.inputs[0], code.add_constant(first[second])), call.outputs, {"axis": axis})
    )
    return True


def drop_unit_reduction(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """A reduction over axes of size one becomes a Reshape."""
    del bugs
    shape, result = code.shape(call.inputs[0]), code.shape(call.out)
    if call.op not in _UNIT_REDUCTIONS or shape is None or result is None:
        return False
    axes = reduced_axes(code, call, len(shape))
    if axes is None or any(shape[axis] != 1 for axis in axes):
        return False
    code.swap(call, reshape_to(code, call.inputs[0], result, call.out))
    return True


def merge_pads(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Pad(Pad(x)) with one constant value becomes one Pad; a negative pad could cut what the inner Pad has added."""
    del bugs
    inner = code.made_by(call.inputs[0], "Pad") if call.op == "Pad" else None
    if inner is None or call.input(3) or inner.input(3):
        return False
    if any(one.get("mode", "constant") != "constant" for one in (inner, call)):
        return False
    first, second = integers(code.constant(inner.inputs[1])), integers(code.constant(call.inputs[1]))
    if first is None or second is None or min((*first, *second), default=0) < 0 or not _same_fill(code, inner, call):
        return False
    total = code.add_constant(int64(tuple(a + b for a, b in zip(first, second, strict=True))))
    code.swap(call, ToyCall("Pad", (inner.inputs[0], total, *call.inputs[2:]), call.outputs, call.attributes))
    return True


def _same_fill(code: Code, inner: ToyCall, call: ToyCall) -> bool:
    """Tell whether both Pads fill with the same value; without one they fill with zeros."""
    if inner.input(2) == call.input(2):
        return True
    dtype = code.dtype(call.out)
    if dtype is None:
        return False
    first, second = (code.constant(one.input(2)) if one.input(2) else np.zeros((), dtype) for one in (inner, call))
    if first is None or second is None:
        return False
    return (
        bool((first.reshape(()) == second.reshape(())) and (np.signbit(first) == np.signbit(second)).all())
        if first.dtype.kind == second.dtype.kind == "f"
        else bool(first.reshape(()) == second.reshape(()))
    )


def merge_expands(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Expand(Expand(x)) becomes one Expand to the known result."""
    del bugs
    inner = code.made_by(call.inputs[0], "Expand") if call.op == "Expand" else None
    shape = code.shape(call.out)
    if inner is None or shape is None:
        return False
    code.swap(call, ToyCall("Expand", (inner.inputs[0], code.add_constant(int64(shape))), call.outputs))
    return True


def merge_tiles(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Tile(Tile(x)) becomes one Tile with the products of the repeats."""
    del bugs
    inner = code.made_by(call.inputs[0], "Tile") if call.op == "Tile" else None
    if inner is None:
        return False
    first, second = integers(code.constant(inner.inputs[1])), integers(code.constant(call.inputs[1]))
    if first is None or second is None:
        return False
    repeats = code.add_constant(int64(tuple(a * b for a, b in zip(first, second, strict=True))))
    code.swap(call, ToyCall("Tile", (inner.inputs[0], repeats), call.outputs))
    return True


def undo_concat(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Split of a Concat into the same parts becomes the operands of the Concat."""
    del bugs
    source = code.made_by(call.inputs[0], "Concat") if call.op == "Split" else None
    rank = code.rank(call.inputs[0])
    if source is None or not rank or len(source.inputs) != len(call.outputs):
        return False
    axis = source.get("axis") % rank
    if call.get("axis", 0) % rank != axis:
        return False
    for name, part in zip(source.inputs, call.outputs, strict=True):
        shape, result = code.shape(name), code.shape(part)
        if shape is None or result is None or shape[axis] != result[axis]:
            return False
    for name, part in zip(source.inputs, call.outputs, strict=True):
        if part:
            code.rename(part, name)
    code.retain([other for other in code.calls if other.outputs != call.outputs])
    return True


def drop_unit_tile_axes(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """A Tile that repeats only axes of size one becomes an Expand."""
    del bugs
    shape, result = code.shape(call.inputs[0]), code.shape(call.out)
    repeats = integers(code.constant(call.inputs[1])) if call.op == "Tile" else None
    if shape is None or result is None or repeats is None:
        return False
    if any(size != 1 and count != 1 for size, count in zip(shape, repeats, strict=True)):
        return False
    code.swap(call, ToyCall("Expand", (call.inputs[0], code.add_constant(int64(result))), call.outputs))
    return True


def swap_slice_and_unary(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Slice(Neg(x)) becomes Neg(Slice(x)), so that fewer elements are computed."""
    del bugs
    inner = code.made_by(call.inputs[0], "Neg", "Abs", "Relu", "Not", "Floor", "Sqrt") if call.op == "Slice" else None
    if inner is None or not only_use(code, inner.out):
        return False
    small = code.fresh(code.dtype(call.out), code.shape(call.out))
    cut = ToyCall("Slice", (inner.inputs[0], *call.inputs[1:]), (small,))
    code.swap(call, cut, ToyCall(inner.op, (small,), call.outputs, inner.attributes))
    return True


def expand_for_zero(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """A sum with a constant that is -0 everywhere in another shape becomes an Expand; for integers, any zero."""
    del bugs
    if call.op != "Add":
        return False
    shape = code.shape(call.out)
    for value, other in ((call.inputs[0], call.inputs[1]), (call.inputs[1], call.inputs[0])):
        zero = code.constant(other)
        if zero is None or not all_equal(zero, 0) or (zero.dtype.kind == "f" and not bool(np.signbit(zero).all())):
            continue
        if shape is not None and not same_shape(code, value, call.out):
            code.swap(call, ToyCall("Expand", (value, code.add_constant(int64(shape))), call.outputs))
            return True
    return False
