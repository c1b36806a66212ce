"""Rewriting of Relax bindings with other operands and in other blocks, and bridges from one tensor type to another.

Standalone scripts contain the text of this file, so it has plain functions and imports only TVM.
"""

# ruff: noqa: ANN401 - TVM's objects have no types

import random
from math import prod
from typing import Any, NamedTuple

import tvm
from tvm import relax, tirx
from tvm.ir import Call, GlobalVar

from miscompile.targets.tvm.relax.functions import operands
from miscompile.targets.tvm.relax.hazards import hazard, is_float
from miscompile.targets.tvm.relax.intervals import limited

_CONSTANT: Any = getattr(tvm.ir, "Constant", None) or relax.Constant
"""Constants of Relax: TVM 0.27 has moved their class."""


def bridge(builder: Any, source: Any, kind: Any, rng: random.Random) -> tuple[list[Any], Any]:
    """Return bindings that convert `source` to a value of type `kind`, and that value.

    They change the number of elements, then the shape, then the element type. A float becomes the integer 1 where it
    is positive and 0 elsewhere, so that no conversion is undefined. Integers are cast without a check, so `clamped`
    must come first.
    """
    made: list[Any] = []

    def then(value: Any) -> Any:
        value = builder.normalize(value)
        made.append(relax.VarBinding(relax.DataflowVar("bridge", value.ty), value))
        return made[-1].var

    var, have, want = source, sizes_of(source.ty)[0], sizes_of(kind)[0]
    if prod(have) != prod(want):
        var = then(relax.op.reshape(var, (prod(have),))) if len(have) != 1 else var
        over = prod(have) - prod(want)
        if over > 0:
            start = rng.randint(0, over)
            var = then(relax.op.strided_slice(var, [0], [start], [start + prod(want)]))
        elif is_float(kind.dtype) and is_float(source.ty.dtype) and rng.random() < 0.5:
            var = then(relax.op.nn.pad(var, [0, -over]))
        else:
            zeros = then(relax.op.zeros((-over,), str(source.ty.dtype)))
            var = then(relax.op.concat([var, zeros]))
    if sizes_of(var.ty)[0] != want:
        var = then(relax.op.reshape(var, want))
    old, new = str(source.ty.dtype), str(kind.dtype)
    if old != new:
        if is_float(old) and not is_float(new):
            var = then(relax.op.greater(var, relax.const(0, old)))
        var = then(relax.op.astype(var, new)) if str(var.ty.dtype) != new else var
    return made, var


def clamped(builder: Any, source: Any, kind: Any, found: Any, bound: int | None) -> tuple[list[Any], Any]:
    """Return bindings that clip an integer before its conversion to type `kind`, and the value.

    The value is between -`bound` and `bound` in both types. It is `source` itself if that is not an integer, or if
    its known range `found` is within the bound. A `bound` of None does not clip.
    """
    one, other = (limited(str(each.dtype), bound) for each in (source.ty, kind))
    if bound is None or one is None or other is None or "bool" in (str(source.ty.dtype), str(kind.dtype)):
        return [], source
    low, high = max(one[0], other[0]), min(one[1], other[1])
    if found is not None and low <= found[0] <= found[1] <= high:
        return [], source
    value = builder.normalize(relax.op.clip(source, low, high))
    var = relax.DataflowVar("bridge", value.ty)
    return [relax.VarBinding(var, value)], var


def assembled(main: Any, parts: list[tuple[bool, list[Any]]]) -> Any:
    """Return `main` with blocks of bindings `parts`, each a dataflow block or not, in place of its own.

    A variable of a dataflow block that is bound or used outside one becomes a variable of the function.
    """
    table: dict[Any, Any] = {}
    blocks = []
    for number, (flow, part) in enumerate(parts):
        others = [one for other, (_, list_) in enumerate(parts) if other != number for one in list_]
        outside = {var for one in others for var in operands(one.value)}
        bound = []
        for one in part:
            if not is_plain(one):
                bound.append(one)
                continue
            value = replaced(one.value, table) if table else one.value
            if isinstance(one.var, relax.DataflowVar) and (not flow or one.var in outside):
                table[one.var] = relax.Var(one.var.name, one.var.ty)
            bound.append(relax.VarBinding(table.get(one.var, one.var), value))
        blocks.append(relax.DataflowBlock(bound) if flow else relax.BindingBlock(bound))
    body = relax.SeqExpr(blocks, replaced(main.body.body, table))
    return relax.Function(main.params, body, main.ret_ty, True, main.attrs)


def is_plain(binding: Any) -> bool:
    """Tell whether a binding can be rewritten with other operands: no cast of sizes, no If, no local function."""
    if not isinstance(binding, relax.VarBinding):
        return False
    return isinstance(binding.value, (Call, relax.Tuple, relax.TupleGetItem, relax.Var, relax.ShapeExpr, _CONSTANT))


def computes(binding: Any) -> bool:
    """Tell whether a binding is an operation, not a tuple or another name."""
    return isinstance(binding.value, Call)


def rebound(binding: Any, place: int, new: Any) -> Any:
    """Return a binding with its operand number `place` replaced."""
    seen = [-1]

    def walk(value: Any) -> Any:
        if isinstance(value, Call):
            op, *args = (walk(part) for part in [value.op, *value.args])
            return Call(op, args, value.attrs, value.ty_args, value.span, value.ty)
        if isinstance(value, relax.Tuple):
            return relax.Tuple([walk(part) for part in value.fields])
        if isinstance(value, relax.TupleGetItem):
            return relax.TupleGetItem(walk(value.tuple_value), value.index)
        if isinstance(value, relax.Var):
            seen[0] += 1
            return new if seen[0] == place else value
        return value

    return relax.VarBinding(binding.var, walk(binding.value))


def replaced(value: Any, table: dict[Any, Any], anew: bool = False) -> Any:
    """Return a value in normal form with other variables and functions, without its types if they must be inferred
    again."""
    if isinstance(value, Call):
        op, *args = (replaced(part, table, anew) for part in [value.op, *value.args])
        if anew:
            return Call(op, args, value.attrs, value.ty_args, value.span)
        return Call(op, args, value.attrs, value.ty_args, value.span, value.ty)
    if isinstance(value, relax.Tuple):
        return relax.Tuple([replaced(part, table, anew) for part in value.fields])
    if isinstance(value, relax.TupleGetItem):
        return relax.TupleGetItem(replaced(value.tuple_value, table, anew), value.index)
    return table.get(value, value) if isinstance(value, (relax.Var, GlobalVar)) else value


def like(kind: Any, other: Any) -> bool:
    """Tell whether two tensors have the same element type and rank."""
    return bool(kind.dtype == other.dtype and kind.ndim == other.ndim)


def tensors(kind: Any) -> list[Any]:
    """Return the types of the tensors in a type."""
    if isinstance(kind, relax.TupleType):
        return [one for field in kind.fields for one in tensors(field)]
    return [kind]


def sizes_of(kind: Any) -> tuple[tuple[int, ...], bool]:
    """Return the sizes of a tensor's type, and whether it has a known element type and is not empty, as an edge
    requires."""
    if not isinstance(kind, relax.TensorType) or kind.dtype is None or not isinstance(kind.shape, relax.ShapeExpr):
        return (0,), False
    if not all(isinstance(size, tirx.IntImm) for size in kind.shape.values):
        return (0,), False
    sizes = tuple(map(int, kind.shape.values))
    return sizes, all(size > 0 for size in sizes)


class Use(NamedTuple):
    """An operand that may be replaced: number `place` of the binding at `row`, now the value of `var`."""

    row: int
    place: int
    var: Any


def uses(module: Any, later: list[Any]) -> list[Use]:
    """Return the operands of the bindings `later` that may have any value without undefined behaviour.

    They must be tensors of known sizes, defined before `later` or in it.
    """
    risky: set[Any] = set()
    found: list[Use] = []
    for index in reversed(range(len(later))):
        one = later[index]
        plain = is_plain(one)
        used = operands(one.value) if plain else relax.analysis.free_vars(one.value)
        if not plain or one.var in risky or hazard(one.value, module):
            risky.update(used)
        else:
            found += [Use(index, place, var) for place, var in enumerate(used) if sizes_of(var.ty)[1]]
    return found
