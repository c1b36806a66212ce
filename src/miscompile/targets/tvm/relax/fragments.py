"""Extraction of patterns from Relax modules: pieces of a function's bindings, with holes for their inputs.

OATest's extraction (section 3.1): a subgraph pattern is a connected set of operations, a block pattern a contiguous run
of one block. A value from outside the piece becomes a parameter (a hole) with its type. Values of the piece that are
used outside or by nobody are returned (the broken outputs). The functions and loop programs that the piece calls are
included.
"""

# ruff: noqa: ANN401 - TVM's objects have no types

import math
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import tvm
from tvm import relax

from miscompile.targets.tvm.relax.functions import finished, operands, substituted
from miscompile.targets.tvm.relax.hazards import hazard
from miscompile.targets.tvm.relax.seams import replaced
from miscompile.targets.tvm.relax.splice import lawful
from miscompile.targets.tvm.relax.text import TEXT_ERRORS

PATTERN = "pattern"
"""The name of the function in a pattern's module that is spliced."""

LONGEST_BLOCK, MOST_BINDINGS = 12, 30
"""The most bindings in a block pattern, and in a subgraph pattern."""

MOST_ELEMENTS = 1 << 18
"""The most elements of a tensor; larger ones make runs slow and give no further information."""

SMALL_SIZE, _DIVISORS = 16, (128, 64, 32, 16, 8, 4, 2)
"""The limit above which a size is large, and the divisors for large sizes, largest first."""

_SIZES = (4, 3, 6, 2, 8, 5)
"""The numbers that replace symbolic sizes, in the order of their names."""

_FOREIGN = ("Primitive", "Codegen", "Composite")
"""Attributes of functions created by passes for external code generators; later passes ignore their bodies."""


class RelaxFragment(NamedTuple):
    """A piece of a module: `module` has the function `pattern`, which returns the broken outputs."""

    module: Any
    granularity: Literal["block", "subgraph"]
    operators: tuple[str, ...]


class Refused(NamedTuple):
    """A piece that cannot be a pattern, and the reason."""

    why: str


def fragments(module: Any, granularity: Literal["block", "subgraph"]) -> Iterator[RelaxFragment | Refused]:
    """Yield the patterns of one granularity in the public and private functions of `module`."""
    module = relax.transform.Normalize()(module)
    for place in sorted(module.functions, key=lambda one: str(one.name_hint)):
        function = module[place]
        if not isinstance(function, relax.Function):
            continue
        if function.attrs is not None and any(key in function.attrs for key in _FOREIGN):
            continue
        sized = concrete(function)
        if sized is None:
            yield Refused("sizes that nothing tells")
            continue
        sized = handy(sized)
        for flow, run in (blocks if granularity == "block" else subgraphs)(sized):
            yield taken(module, sized, run, flow, granularity)


def concrete(function: Any) -> Any:
    """Return `function` with numbers for its symbolic sizes; None if a symbol is not a size of any parameter."""
    names = sorted({str(var.name) for var in relax.analysis.free_symbolic_vars(function)})
    names += sorted({str(var.name) for var in relax.analysis.defined_symbolic_vars(function)} - set(names))
    if not names:
        return function
    table = {name: _SIZES[place % len(_SIZES)] for place, name in enumerate(names)}
    module = relax.transform.BindSymbolicVars(table, PATTERN)(tvm.IRModule({PATTERN: function}))
    module = relax.transform.Normalize()(module)
    return module[PATTERN]


def handy(function: Any) -> Any:
    """Return `function` with element types for parameters without one, and with smaller sizes in place of large
    ones.

    All large sizes are divided by the same number, so that relations between them remain. If TVM's type inference
    rejects the result, `function` is returned unchanged.
    """
    kinds = [kind for param in function.params for kind in tensors(param.ty)]
    sizes = [size for kind in kinds if kind is not None for size in known_sizes(kind)]
    large = [size for size in sizes if size > SMALL_SIZE]
    divisor = next((one for one in _DIVISORS if all(size % one == 0 for size in large)), 1)
    if math.prod(sizes) <= MOST_ELEMENTS:  # an upper bound on any product of them
        divisor = 1
    kinds = [changed(param.ty, divisor) for param in function.params]
    if all(kind == param.ty for kind, param in zip(kinds, function.params, strict=True)):
        return function
    params = [relax.Var(param.name, kind) for param, kind in zip(function.params, kinds, strict=True)]
    table = dict(zip(function.params, params, strict=True))
    builder = relax.BlockBuilder()
    made = []
    try:
        for block in function.body.blocks:
            bound = []
            for one in block.bindings:
                value = builder.normalize(replaced(one.value, table, anew=True))
                table[one.var] = type(one.var)(one.var.name, value.ty)
                bound.append(relax.VarBinding(table[one.var], value))
            made.append(type(block)(bound))
    except TEXT_ERRORS:
        return function
    result = replaced(function.body.body, table)
    return relax.Function(params, relax.SeqExpr(made, result), result.ty, True, function.attrs)


def changed(kind: Any, divisor: int) -> Any:
    """Return a tensor's type with an element type, and its large sizes divided; other types as they are."""
    if not isinstance(kind, relax.TensorType) or not known_sizes(kind):
        return kind
    sizes = [size // divisor if size > SMALL_SIZE else size for size in known_sizes(kind)]
    return relax.TensorType(sizes, "float32" if kind.dtype is None else str(kind.dtype))


def known_sizes(kind: Any) -> tuple[int, ...]:
    """Return the sizes of a tensor's type with any element type; none if they are unknown."""
    if not isinstance(kind, relax.TensorType) or not isinstance(kind.shape, relax.ShapeExpr):
        return ()
    if not all(isinstance(size, tvm.tirx.IntImm) for size in kind.shape.values):
        return ()
    return tuple(map(int, kind.shape.values))


def blocks(function: Any) -> Iterator[tuple[bool, list[Any]]]:
    """Yield the contiguous runs of each block of bindings, cut if they are long, and whether the block is a dataflow
    block."""
    for block in function.body.blocks:
        bindings = list(block.bindings)
        flow = isinstance(block, relax.DataflowBlock)
        for low in range(0, len(bindings), LONGEST_BLOCK):
            yield flow, bindings[low : low + LONGEST_BLOCK]


def subgraphs(function: Any) -> Iterator[tuple[bool, list[Any]]]:
    """Yield the connected sets of bindings, each in order: those that share operands or results belong together."""
    bindings = [binding for block in function.body.blocks for binding in block.bindings]
    flow = all(isinstance(block, relax.DataflowBlock) for block in function.body.blocks)
    group: dict[Any, int] = {}
    parent = list(range(len(bindings)))

    def root(place: int) -> int:
        while parent[place] != place:
            place = parent[place]
        return place

    for place, binding in enumerate(bindings):
        value = binding.value if hasattr(binding, "value") else None
        for var in [binding.var, *operands(value)]:
            parent[root(place)] = root(group.setdefault(var, place))
    for first in sorted({root(place) for place in range(len(bindings))}):
        yield flow, [binding for place, binding in enumerate(bindings) if root(place) == first]


def taken(
    module: Any, function: Any, run: list[Any], flow: bool, granularity: Literal["block", "subgraph"]
) -> RelaxFragment | Refused:
    """Return the bindings `run` of `function` as a pattern, or the reason why they cannot be one."""
    why = unfit(module, run)
    if why:
        return Refused(why)
    params, first, new = holes(run)
    inside = []
    for binding in run:
        value = substituted(binding.value, new)
        new[binding.var] = (relax.DataflowVar if flow else relax.Var)(binding.var.name, binding.var.ty)
        inside.append(relax.VarBinding(new[binding.var], value))
    results = outputs(function, run)
    more, fields = flattened([new[var] for var in results], flow)
    if not fields:
        return Refused("no tensor comes out")
    kind = relax.TupleType([var.ty for var in fields])
    if flow:
        inner = finished(params, [], [*first, *inside, *more], relax.Tuple(fields), kind)
    else:
        result = relax.Var("result", kind)
        body = [*first, *inside, *more, relax.VarBinding(result, relax.Tuple(fields))]
        inner = relax.Function(params, relax.SeqExpr([relax.BindingBlock(body)], result), kind)
    if relax.analysis.free_symbolic_vars(inner):
        return Refused("sizes that nothing tells")
    try:
        found = RelaxFragment(*closed(module, inner, granularity))
    except TEXT_ERRORS:
        return Refused("not well formed by itself")
    own = found.module[PATTERN]
    if lawful(relax.BlockBuilder(found.module), own, [param.ty for param in own.params]) is None:
        return Refused("integers that may overflow")
    return found


def closed(module: Any, inner: Any, granularity: Any) -> tuple[Any, Any, tuple[str, ...]]:
    """Return a module of the function `inner` and all that it calls, its granularity and its operators."""
    needed: dict[str, Any] = {}
    todo = [inner]
    while todo:
        for place in relax.analysis.all_global_vars(todo.pop()):
            if place.name_hint not in needed:
                needed[place.name_hint] = place
                if isinstance(module[place], relax.Function):
                    todo.append(module[place])
    inner = relax.utils.copy_with_new_vars(inner).with_attr("global_symbol", PATTERN)
    table = {place: module[place] for place in needed.values()}
    made = tvm.IRModule({tvm.ir.GlobalVar(PATTERN): inner, **table})
    made = relax.transform.Normalize()(made)
    relax.analysis.well_formed(made)
    return made, granularity, operators_of(made[PATTERN])


def operators_of(function: Any) -> tuple[str, ...]:
    """Return the names of the operators and functions that `function` calls, in order."""
    names = []
    for block in function.body.blocks:
        for binding in block.bindings:
            if isinstance(binding.value, tvm.ir.Call):
                op = binding.value.op
                names.append(op.name.removeprefix("relax.") if isinstance(op, tvm.ir.Op) else "function")
    return tuple(names)


def unfit(module: Any, run: list[Any]) -> str:
    """Return why bindings cannot be a pattern; an empty text if they can."""
    if len(run) > MOST_BINDINGS:
        return "too many bindings"
    if not all(isinstance(binding, relax.VarBinding) for binding in run):
        return "a cast of sizes"
    if not any(isinstance(binding.value, tvm.ir.Call) for binding in run):
        return "no operation"
    why = next(filter(None, (hazard(binding.value, module) for binding in run)), "")
    if why:
        return why
    bound = {binding.var for binding in run}
    inputs = {var for binding in run for var in operands(binding.value) if var not in bound}
    for var in [*bound, *inputs]:
        for kind in tensors(var.ty):
            if kind is None or sizes_of(kind) is None:
                return "a value that is no tensor of known sizes"
            if not 0 < math.prod(sizes_of(kind) or ()) <= MOST_ELEMENTS and sizes_of(kind):
                return "too large, or empty"
    return ""


def tensors(kind: Any) -> list[Any]:
    """Return the types of the tensors in a type; None represents other types than tensors and tuples of tensors."""
    if isinstance(kind, relax.TupleType):
        return [one for field in kind.fields for one in tensors(field)]
    return [kind if isinstance(kind, relax.TensorType) else None]


def sizes_of(kind: Any) -> tuple[int, ...] | None:
    """Return the sizes of a tensor's type; None if they or the element type are unknown."""
    if not isinstance(kind, relax.TensorType) or kind.dtype is None or not isinstance(kind.shape, relax.ShapeExpr):
        return None
    sizes = known_sizes(kind)
    return sizes if len(sizes) == len(kind.shape.values) else None


def holes(run: list[Any]) -> tuple[list[Any], list[Any], dict[Any, Any]]:
    """Return the parameters for the outer values of `run`, bindings that build tuples of them, and the replaced
    values.

    Each tensor of a tuple is a parameter of its own.
    """
    bound = {binding.var for binding in run}
    inputs = dict.fromkeys(var for binding in run for var in operands(binding.value) if var not in bound)
    params: list[Any] = []
    first: list[Any] = []

    def made(name: str, kind: Any) -> Any:
        if isinstance(kind, relax.TupleType):
            fields = [made(f"{name}_{place}", field) for place, field in enumerate(kind.fields)]
            var = relax.DataflowVar(name, kind)
            first.append(relax.VarBinding(var, relax.Tuple(fields)))
            return var
        params.append(relax.Var(name, kind))
        return params[-1]

    return params, first, {var: made(f"hole{place}", var.ty) for place, var in enumerate(inputs)}


def outputs(function: Any, run: list[Any]) -> list[Any]:
    """Return the values of `run` that are used outside it, or by nobody."""
    bound = [binding.var for binding in run]
    inside = {var for binding in run for var in operands(binding.value)}
    rest = [b for block in function.body.blocks for b in block.bindings if not any(b.same_as(one) for one in run)]
    outside = {var for binding in rest for var in operands(getattr(binding, "value", None))}
    outside |= set(operands(function.body.body))
    return [var for var in bound if var in outside or var not in inside]


def flattened(results: list[Any], flow: bool) -> tuple[list[Any], list[Any]]:
    """Return bindings that extract the tensors from tuples among `results`, and all the tensors."""
    more: list[Any] = []
    fields: list[Any] = []

    def walk(var: Any) -> None:
        if not isinstance(var.ty, relax.TupleType):
            fields.append(var)
            return
        for place, kind in enumerate(var.ty.fields):
            item = (relax.DataflowVar if flow else relax.Var)(f"{var.name}_{place}", kind)
            more.append(relax.VarBinding(item, relax.TupleGetItem(var, place)))
            walk(item)

    for var in results:
        walk(var)
    return more, fields
