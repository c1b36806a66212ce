"""A pattern spliced into the middle of a Relax program, with edges from the program into it and back.

After OATest's synthesis (section 3.2). At a random point between the bindings of `main` each hole of the pattern gets
an earlier value: one of the same type; or, as in the abstract form of the pattern, one of the same rank and element
type with which its operations still type; or any value through a bridge of slicing or padding, reshaping and
conversion. Then each result of the pattern replaces an operand of a later binding, through a bridge if no operand has
its type. Values only flow forwards, so there is no cycle. No integer overflows: integer inputs of a pattern are clipped
as the pattern requires, and a result replaces an operand only if `ranges.py` proves that later integers stay within
their types.

Standalone scripts contain the text of this file, so that they need only TVM. It therefore has plain functions and
few imports.
"""

# ruff: noqa: ANN401 - TVM's objects have no types

import random
from typing import Any, NamedTuple

from tvm import relax, tirx
from tvm.ir import Call

from miscompile.targets.tvm.relax.functions import operands
from miscompile.targets.tvm.relax.hazards import is_float
from miscompile.targets.tvm.relax.intervals import OverflowsError, limited
from miscompile.targets.tvm.relax.ranges import follow
from miscompile.targets.tvm.relax.seams import (
    Use,
    assembled,
    bridge,
    clamped,
    computes,
    is_plain,
    like,
    rebound,
    replaced,
    sizes_of,
    tensors,
    uses,
)

INNER_SHARE, BLEND_SHARE, OWN_BLOCK_SHARE = 0.75, 0.5, 0.2
"""The probabilities that a hole gets a bound value instead of a parameter, that a result is added to an otherwise
unused operand instead of replacing it, and that the pattern is in a block of its own between two halves of a
dataflow block."""

DRAWS = 6
"""The number of tries to find values of other sizes with which a pattern still types, and operands that a result may
replace."""

BOUNDS = (100, 10, 4, 1)
"""The bounds to which integer inputs and results of a pattern are clipped; the first that is proven safe is used."""


class NoPlaceError(ValueError):
    """A program into which nothing can be spliced."""


class SpliceFacts(NamedTuple):
    """The effects of a splicing: edges from bound values into the pattern, and from it into bindings that compute
    something; holes and results by kind of connection; whether the pattern is in a block of its own."""

    inner_in: int
    inner_out: int
    exact: int
    relaxed: int
    bridged: int
    rewired: int
    bridged_out: int
    loose: int
    apart: bool


def splice_all(module: Any, patterns: list[Any], seed: int = 0, call: bool = False) -> Any:
    """Return `module` with the patterns spliced one after the other, without those for which there is no place.

    Only the last may be in a block of its own, because `splice` requires a program of one block.
    """
    for place, pattern in enumerate(patterns):
        try:
            module, _ = splice(module, pattern, seed + place, call, whole=place + 1 < len(patterns))
        except NoPlaceError:
            continue
    return module


def splice(
    module: Any, pattern: Any, seed: int = 0, call: bool = False, whole: bool = False
) -> tuple[Any, SpliceFacts]:
    """Return `module` with the function `pattern` of the module `pattern` spliced into `main`, and its effects.

    With `call` the pattern is a private function that is called, with `whole` the block is not split. Deterministic.
    Raises NoPlaceError when `main` is not one block of at least two bindings, or has no point between
    a value that a hole could take and an operand that a result could replace, for a pattern whose integers may
    overflow, and for a module that is not well-formed.
    """
    if not relax.analysis.check_well_formed(module):
        raise NoPlaceError("the program is not well-formed as the importer has made it")
    rng = random.Random(seed)
    builder = relax.BlockBuilder(module)
    place = module.get_global_var("main")
    main = module[place]
    if len(main.body.blocks) != 1 or len(main.body.blocks[0].bindings) < 2:
        raise NoPlaceError("main is not one block of bindings")
    bindings = list(main.body.blocks[0].bindings)
    flow = isinstance(main.body.blocks[0], relax.DataflowBlock)
    moving = depending(main.params, bindings)
    point = chosen_point(module, bindings, moving, rng)
    fragment = adopted(builder, pattern)
    inner = [one.var for one in bindings[:point] if one.var in moving]
    outer = [one for one in main.params if sizes_of(one.ty)[1]]
    known: dict[Any, Any] = {}
    follow(bindings[:point], known, module, set())
    filling, results, counts = filled(builder, fragment, inner, outer, call, known, rng)
    later, more, outs = connected(builder, bindings[point:], results, known, rng)
    in_own_block = flow and all(map(is_plain, bindings)) and rng.random() < OWN_BLOCK_SHARE and not whole
    if in_own_block:
        parts = [(True, bindings[:point]), (False, filling + more), (True, later)]
    else:
        parts = [(flow, [*bindings[:point], *filling, *more, *later])]
    builder.update_func(place, assembled(main, parts))
    spliced = relax.transform.Normalize()(builder.finalize())
    relax.analysis.well_formed(spliced)
    return spliced, SpliceFacts(counts[0], outs[0], *counts[1:], *outs[1:], in_own_block)


def depending(params: Any, bindings: list[Any]) -> set[Any]:
    """Return which variables of `bindings` a hole may get: tensors of known sizes that depend on one of `params`.

    The compiler folds values that depend on constants only, and would fold a pattern on them too. If no other value
    is bound, all tensors of known sizes are returned.
    """
    reached = set(params)
    for one in bindings:
        used = operands(one.value) if is_plain(one) else relax.analysis.free_vars(one.value)
        if not reached.isdisjoint(used):
            reached.add(one.var)
    known = [one.var for one in bindings if sizes_of(one.var.ty)[1]]
    return reached.intersection(known) or set(known)


def chosen_point(module: Any, bindings: list[Any], moving: set[Any], rng: random.Random) -> int:
    """Return a point between two bindings, with one of `moving` before it and a replaceable operand after it.

    There is at least one binding on either side. Raises NoPlaceError when there is no such point.
    """
    first = next((place for place, one in enumerate(bindings, 1) if one.var in moving), len(bindings))
    last = max((use.row for use in uses(module, bindings) if computes(bindings[use.row])), default=0)
    good = [point for point in range(1, len(bindings)) if first <= point <= last]
    if not good:
        raise NoPlaceError("no operand that a result could replace behind a value that a hole could take")
    return rng.choice(good)


def adopted(builder: Any, pattern: Any) -> Any:
    """Add the functions that the pattern calls to the builder's module, under unused names.

    Returns the function `pattern`, with variables of its own, that calls them.
    """
    table: dict[Any, Any] = {}

    def moved(function: Any) -> Any:
        for place in relax.analysis.all_global_vars(function):
            if place not in table:
                callee = pattern[place]
                callee = callee if isinstance(callee, tirx.PrimFunc) else moved(callee)
                if callee.attrs is not None and "global_symbol" in callee.attrs:
                    callee = callee.without_attr("global_symbol")
                table[place] = builder.add_func(callee, place.name_hint)
        function = relax.utils.copy_with_new_vars(function)
        blocks = []
        for block in function.body.blocks:
            bound = [relax.VarBinding(one.var, replaced(one.value, table)) for one in block.bindings]
            blocks.append(type(block)(bound))
        body = relax.SeqExpr(blocks, function.body.body)
        return relax.Function(function.params, body, function.ret_ty, True, function.attrs)

    return moved(pattern["pattern"])


def filled(
    builder: Any,
    fragment: Any,
    inner: list[Any],
    outer: list[Any],
    call: bool,
    known: dict[Any, Any],
    rng: random.Random,
) -> tuple[list[Any], list[Any], tuple[int, int, int, int]]:
    """Return bindings that compute the pattern, its results, and how many holes got bound values, were filled by a
    value of the same type, of another size, and through a bridge. The ranges of new values are added to `known`."""
    kinds = [param.ty for param in fragment.params]
    given = [picked(kind, inner, outer, rng) for kind in kinds]
    loosened: list[Any] = []
    if any(one is None for one in given) and not call and not relax.analysis.all_global_vars(fragment):
        loosened = relaxed(builder, fragment, given, inner, outer, rng)
    if inner and given and not {None, *inner}.intersection(loosened or given):
        loosened, given[rng.randrange(len(given))] = [], None  # then at least one of them needs a bridge
    bound = lawful(builder, fragment, [one.ty for one in loosened] or kinds)
    if bound is None and loosened:
        loosened, bound = [], lawful(builder, fragment, kinds)
    if bound is None:
        raise NoPlaceError("a pattern whose integers may overflow")
    before: list[Any] = []
    sources: list[Any] = []
    for place, kind in enumerate(kinds):
        var = loosened[place] if loosened else given[place]
        sources.append(drawn(var, sources, inner, outer, rng))
        steps, tame = clamped(builder, sources[-1], kind, known.get(sources[-1]), bound)
        more, given[place] = bridge(builder, tame, kind, rng) if var is None else ([], tame)
        before += steps + more
    joints = list(zip(given, sources, kinds, strict=True))
    counts = (
        sum(any(one.same_as(var) for var in inner) for one in sources),
        sum(one.ty == kind and one.same_as(source) for one, source, kind in joints),
        sum(one.ty != kind for one, _, kind in joints),
        sum(not one.same_as(source) for one, source, _ in joints),
    )
    inside, fields = by_call(builder, fragment, given) if call else placed(builder, fragment, given)
    try:
        follow(before + inside, known, builder.get())
    except OverflowsError as error:  # the ranges cannot follow this kind of bridge
        raise NoPlaceError(str(error)) from None
    return before + inside, fields, counts


def lawful(builder: Any, fragment: Any, kinds: list[Any]) -> int | None:
    """Return the bound on integers of the types `kinds` in the holes of `fragment`; None if no bound is safe.

    The functions that it calls must be in the builder's module.
    """
    holes = [relax.Var("hole", kind) for kind in kinds]
    inside, _ = placed(builder, fragment, holes)
    for bound in BOUNDS:
        known = {one: limited(str(one.ty.dtype), bound) for one in holes}
        try:
            follow(inside, known, builder.get())
        except OverflowsError:
            continue
        return bound
    return None


def drawn(var: Any, sources: list[Any], inner: list[Any], outer: list[Any], rng: random.Random) -> Any:
    """Return the value for a hole: `var` if there is one, otherwise a random one, preferably from `sources`."""
    if var is not None:
        return var
    joined = any(one.same_as(other) for one in sources for other in inner)
    pool = inner if inner and (not joined or not outer or rng.random() < INNER_SHARE) else outer
    if not pool:
        raise NoPlaceError("no value that a hole could take")
    return rng.choice(pool)


def by_call(builder: Any, fragment: Any, given: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return bindings that call `fragment`, as a private function, on the values `given`, and its results."""
    target = builder.add_func(fragment.without_attr("global_symbol"), "spliced")
    result = relax.DataflowVar("spliced", fragment.ret_ty)
    fields = [relax.DataflowVar(f"spliced_{place}", kind) for place, kind in enumerate(fragment.ret_ty.fields)]
    items = [relax.VarBinding(var, relax.TupleGetItem(result, place)) for place, var in enumerate(fields)]
    return [relax.VarBinding(result, Call(target, given, ret_ty=fragment.ret_ty)), *items], fields


def picked(kind: Any, inner: list[Any], outer: list[Any], rng: random.Random) -> Any:
    """Return a value of type `kind`, a bound one by preference; None if there is none."""
    one, other = ([var for var in pool if var.ty == kind] for pool in (inner, outer))
    if one and (not other or rng.random() < INNER_SHARE):
        return rng.choice(one)
    return rng.choice(other) if other else None


def relaxed(
    builder: Any, fragment: Any, given: list[Any], inner: list[Any], outer: list[Any], rng: random.Random
) -> list[Any]:
    """Return values for all holes, of other sizes where `given` has none, with which the pattern types; [] for none.

    Holes of one type get values of one type.
    """
    pools: dict[Any, list[Any]] = {}
    for param, var in zip(fragment.params, given, strict=True):
        if var is None and str(param.ty) not in pools:
            alike = [one for one in inner if like(one.ty, param.ty)] or [one for one in outer if like(one.ty, param.ty)]
            if not alike:
                return []
            pools[str(param.ty)] = alike
    for _ in range(DRAWS):
        kinds = {key: rng.choice(pool).ty for key, pool in pools.items()}
        drawn = []
        for param, var in zip(fragment.params, given, strict=True):
            alike = [one for one in pools.get(str(param.ty), []) if one.ty == kinds[str(param.ty)]]
            drawn.append(rng.choice(alike) if var is None else var)
        try:
            placed(builder, fragment, drawn)
        except (ValueError, RuntimeError, TypeError):
            continue  # TVM's type inference rejects these sizes
        return drawn
    return []


def placed(builder: Any, fragment: Any, given: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return the bindings of `fragment` on the values `given`, with new variables, and its results.

    If a value has another type than its hole, all types are inferred again. Raises ValueError when a result then has
    a size that is unknown or not positive, and TVM's exceptions when an operation does not type.
    """
    table = dict(zip(fragment.params, given, strict=True))
    anew = any(var.ty != param.ty for param, var in table.items())
    made: list[Any] = []
    fields: list[Any] = []
    for block in fragment.body.blocks:
        for binding in block.bindings:
            value = replaced(binding.value, table, anew)
            if binding.var.same_as(fragment.body.body):
                fields = list(value.fields)
                continue
            value = builder.normalize(value) if anew else value
            kind = value.ty if anew else binding.var.ty
            if anew and not all(size and size > 0 for one in tensors(kind) for size in sizes_of(one)[0]):
                raise ValueError("an empty or unknown size")
            table[binding.var] = relax.DataflowVar(binding.var.name, kind)
            made.append(relax.VarBinding(table[binding.var], value))
    return made, fields


def connected(
    builder: Any, later: list[Any], results: list[Any], known: dict[Any, Any], rng: random.Random
) -> tuple[list[Any], list[Any], tuple[int, int, int, int]]:
    """Replace an operand of a binding in `later` by each of `results`.

    Returns the new bindings, the bindings that must precede them, and four counts of results: used by a binding that
    computes something, in place of an operand without a bridge, through a bridge, and unused.
    """
    free = uses(builder.get(), later)
    touched: set[Any] = set()
    more: list[Any] = []
    inner = direct = indirect = loose = 0
    for result in results:
        computing = [use for use in free if computes(later[use.row])] or free
        if not sizes_of(result.ty)[1]:
            computing = []
        tried = sorted(rng.sample(computing, len(computing)), key=lambda use: use.var.ty != result.ty)[:DRAWS]
        wires = ((use, wired(builder, later, use, result, known, touched, rng)) for use in tried)
        use, wire = next(((use, wire) for use, wire in wires if wire), (None, None))
        if use is None or wire is None:
            loose += 1
            continue
        free.remove(use)
        steps, value, later = wire
        touched.add(value)
        follow(steps, known, builder.get(), touched)
        more += steps
        inner += computes(later[use.row])
        direct += not steps
        indirect += bool(steps)
    return later, more, (inner, direct, indirect, loose)


def wired(
    builder: Any, later: list[Any], use: Use, result: Any, known: dict[Any, Any], touched: set[Any], rng: random.Random
) -> tuple[list[Any], Any, list[Any]] | None:
    """Return `later` with `result` as the operand `use`: bindings before it, the operand, and the new `later`.

    None if integers are not proven to stay within their types; `touched` are the values that replaced others
    earlier.
    """
    old = later[use.row]
    integers = limited(str(result.ty.dtype), 1) and limited(str(use.var.ty.dtype), 1)
    alone = sum(use.var.same_as(var) for one in later for var in operands(one.value)) == 1
    bound_here = any(use.var.same_as(one.var) for one in later)
    blended = alone and not bound_here and _blends(str(use.var.ty.dtype)) and rng.random() < BLEND_SHARE
    for bound in (None, *BOUNDS) if integers else (None,):
        steps, tame = clamped(builder, result, use.var.ty, known.get(result), bound)
        bridged, value = bridge(builder, tame, use.var.ty, rng)
        steps += bridged
        if blended:
            blend = builder.normalize(relax.op.add(use.var, value))
            value = relax.DataflowVar("blend", blend.ty)
            steps.append(relax.VarBinding(value, blend))
        new = [*later[: use.row], rebound(old, use.place, value), *later[use.row + 1 :]]
        trial = dict(known)
        try:
            follow(steps, trial, builder.get())
            follow(new, trial, builder.get(), {*touched, value})
        except OverflowsError:
            continue
        return steps, value, new
    return None


def _blends(kind: str) -> bool:
    """Tell whether an oracle can judge sums of this type; in 8-bit floats one ulp may reach the next power of two."""
    return is_float(kind) and not kind.startswith("float8")
