"""Relax functions: runs of a module's bindings moved into global functions, which are called in their place.

After HIRFUZZ's function wrapping and rewriting (Algorithm 2, section 3.3.2). ONNX cannot represent its third
rewrite, a function that returns a function. The results of the module do not change in any bit, because no operation
changes.

Standalone scripts contain the text of this file, so it has plain functions and imports only TVM.
"""

# ruff: noqa: ANN401 - TVM's objects have no types

import random
from typing import Any

import tvm_ffi
from tvm import relax
from tvm.ir import Call


def wrap(module: Any, seed: int = 0, count: int = 2, depth: int = 2, rewrite: str = "any") -> Any:
    """Move up to `count` random runs of bindings of `main`, or of functions created so, into functions of their own.

    `depth` is the greatest nesting depth of the functions. A run that occurs again calls the same function, and
    sometimes a function is called twice for one run. `rewrite` selects how the function is called: directly (`none`),
    through a function that forwards to it (`forward`), as a local function of another (`closure`), as a function that
    another one returns (`factory`), or each time in one of these ways (`any`). Local functions are lifted at once,
    unless `lift` is `last`; then the caller must do it. A module that is not well-formed, which TVM's importer
    sometimes returns, is returned unchanged. Deterministic.
    """
    if not relax.analysis.check_well_formed(module):
        return module
    rng = random.Random(seed)
    builder = relax.BlockBuilder(module)
    levels = {"main": 0}
    for _ in range(8 * count):
        if len(levels) > count:
            break
        caller = rng.choice([name for name, level in levels.items() if level < depth])
        way = rng.choice(["none", "forward", "closure", "factory"]) if rewrite == "any" else rewrite
        made = extract(builder, caller, way, rng)
        if made is not None:
            levels[made] = levels[caller] + 1 if way in ("none", "forward") else depth
    module = relax.transform.Normalize()(builder.finalize())
    relax.analysis.well_formed(module)
    return relax.transform.LambdaLift()(module)


def extract(builder: Any, caller: str, way: str, rng: random.Random) -> str | None:
    """Move one random run of the bindings of `caller` into a function; return its name, None if that is impossible."""
    module = builder.get()
    place = module.get_global_var(caller)
    function = module[place]
    blocks = function.body.blocks
    if len(blocks) != 1 or not isinstance(blocks[0], relax.DataflowBlock):
        return None
    bindings = list(blocks[0].bindings)
    length = min(rng.randint(1, 8), len(bindings))
    low = rng.randrange(len(bindings) - length + 1)
    inner, inputs, outputs = outline(bindings, function.body.body, low, low + length)
    if inner is None:
        return None
    if way == "factory" and not isinstance(result_type(outputs), relax.TensorType):
        way = "closure"  # after lowering, the result of a closure has no type, so TupleGetItem fails on it
    if way in ("closure", "factory") and any(isinstance(var.ty, relax.TupleType) for var in inputs):
        way = "forward"  # TVM expands tuple parameters, but not where closures are created
    call, target, name = callee(builder, inner, way, rng)
    if reaches(builder.get(), target.name_hint, caller):
        return None  # the builder returned an equal existing function, which calls this one
    starts = [low]
    for other in range(len(bindings) - length + 1):  # the same operations elsewhere call the same function
        if all(abs(other - start) >= length for start in starts):
            twin, _, _ = outline(bindings, function.body.body, other, other + length)
            if twin is not None and tvm_ffi.structural_equal(inner, twin, map_free_vars=True):
                starts.append(other)
    for start in sorted(starts, reverse=True):
        _, inputs, outputs = outline(bindings, function.body.body, start, start + length)
        calls, rest = call(inputs, outputs), bindings[start + length :]
        if rng.random() < 0.3:
            copies = {old: relax.DataflowVar(old.name + "_again", old.ty) for old in outputs}
            calls += call(inputs, list(copies.values()))
            rest = [b if rng.random() < 0.5 else rebound(b, copies) for b in rest]
        bindings[start:] = calls + rest
    body = relax.SeqExpr([relax.DataflowBlock(bindings)], function.body.body)
    builder.update_func(place, relax.Function(function.params, body, function.ret_ty, True, function.attrs))
    return name


def outline(bindings: list[Any], result: Any, low: int, high: int) -> tuple[Any, list[Any], list[Any]]:
    """Return the function that computes bindings `low` to `high`, the values it is called with, and those it defines.

    The function is None if a run cannot be a function: it contains casts that define sizes, or sizes unknown from
    the inputs.
    """
    run, later = bindings[low:high], bindings[high:]
    if not all(isinstance(binding, relax.VarBinding) for binding in run):
        return None, [], []
    bound = {binding.var for binding in run}
    inputs = list(dict.fromkeys(var for b in run for var in operands(b.value) if var not in bound))
    used = {var for b in later for var in operands(b.value)} | {result}
    outputs = [binding.var for binding in run if binding.var in used]
    if not outputs:
        return None, [], []
    new = {var: relax.Var(f"arg{place}", var.ty) for place, var in enumerate(inputs)}
    params, inside = list(new.values()), []
    for binding in run:
        value = substituted(binding.value, new)
        new[binding.var] = relax.DataflowVar(binding.var.name, binding.var.ty)
        inside.append(relax.VarBinding(new[binding.var], value))
    value = new[outputs[0]] if len(outputs) == 1 else relax.Tuple([new[var] for var in outputs])
    inner = finished(params, [], inside, value, result_type(outputs))
    if relax.analysis.free_symbolic_vars(inner):
        return None, [], []
    return inner, inputs, outputs


def callee(builder: Any, inner: Any, way: str, rng: random.Random) -> tuple[Any, Any, str]:
    """Add `inner` to the module, to be called in the given `way`.

    Returns a function from arguments and results to the bindings of a call, the function that is called, and the
    name of the function with the bindings of `inner`.
    """
    sized = relax.analysis.defined_symbolic_vars(inner)  # sizes follow from the arguments, so all must be passed
    known = [not sized and rng.random() < 0.4 for _ in inner.params]  # the variables that a closure captures
    if way in ("none", "forward"):
        function = target = added(builder, inner, "fn", rng)
        if way == "forward":
            params = fresh(inner.params)
            through = finished(params, [], [], Call(function, params, ret_ty=inner.ret_ty), inner.ret_ty)
            target = added(builder, through, "forward", rng)
        return lambda inputs, outputs: bound_call(target, inputs, outputs), target, function.name_hint
    params = fresh(inner.params)
    captured = [param for param, is_known in zip(params, known, strict=True) if is_known]
    passed = [param for param, is_known in zip(params, known, strict=True) if not is_known]
    local, local_binding = closure(inner, params, known)
    if way == "closure":
        value = Call(local, passed, ret_ty=inner.ret_ty)
        target = added(builder, finished(params, [local_binding], [], value, inner.ret_ty), "outer", rng)
        return lambda inputs, outputs: bound_call(target, inputs, outputs), target, target.name_hint
    if not captured and rng.random() < 0.3:
        returned, first = added(builder, inner, "fn", rng), []
    else:
        returned, first = local, [local_binding]
    target = added(builder, finished(captured, first, [], returned, local.ty, flow=False), "factory", rng)

    def call(inputs: list[Any], outputs: list[Any]) -> list[Any]:
        maker = relax.DataflowVar("made", local.ty)
        given = [value for value, is_known in zip(inputs, known, strict=True) if is_known]
        rest = [value for value, is_known in zip(inputs, known, strict=True) if not is_known]
        return [
            relax.VarBinding(maker, Call(target, given, ret_ty=local.ty)),
            *bound_call(maker, rest, outputs),
        ]

    return call, target, target.name_hint


def reaches(module: Any, start: str, goal: str) -> bool:
    """Tell whether function `start` is `goal`, or calls it directly or through others."""
    seen: set[str] = set()
    todo = [start]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            if isinstance(module[name], relax.Function):  # a kernel calls none
                todo += [var.name_hint for var in relax.analysis.all_global_vars(module[name])]
    return goal in seen


def closure(inner: Any, params: list[Any], known: list[bool]) -> tuple[Any, Any]:
    """Return a variable with the local form of `inner`, which captures some of `params`, and its binding."""
    copy = relax.utils.copy_with_new_vars(inner)
    captured = {old: param for old, param, is_known in zip(copy.params, params, known, strict=True) if is_known}
    rest = [old for old, is_known in zip(copy.params, known, strict=True) if not is_known]
    (block,) = copy.body.blocks
    new = dict(captured)
    inside = []
    for binding in block.bindings:
        value = substituted(binding.value, new)
        inside.append(relax.VarBinding(binding.var, value))
    body = relax.SeqExpr([relax.DataflowBlock(inside)], copy.body.body)
    function = relax.Function(rest, body, copy.ret_ty)
    local = relax.Var("local", function.ty)
    return local, relax.VarBinding(local, function)


def finished(params: list[Any], first: list[Any], inside: list[Any], value: Any, kind: Any, flow: bool = True) -> Any:
    """Return a function: the bindings `first`, then the dataflow bindings `inside`, then `value` of type `kind`."""
    blocks = [relax.BindingBlock(first)] if first else []
    if flow:
        result = relax.Var("result", kind)
        blocks.append(relax.DataflowBlock([*inside, relax.VarBinding(result, value)]))
        value = result
    return relax.Function(params, relax.SeqExpr(blocks, value), kind)


def added(builder: Any, function: Any, word: str, rng: random.Random) -> Any:
    """Add a function, public or private, with variables of its own to the module."""
    name = f"{word}{len(builder.get().functions)}"
    function = relax.utils.copy_with_new_vars(function)
    return builder.add_func(function.with_attr("global_symbol", name) if rng.random() < 0.3 else function, name)


def bound_call(target: Any, inputs: list[Any], outputs: list[Any]) -> list[Any]:
    """Return bindings that call `target` with `inputs` and define `outputs`."""
    value = Call(target, inputs, ret_ty=result_type(outputs))
    if len(outputs) == 1:
        return [relax.VarBinding(outputs[0], value)]
    results = relax.DataflowVar("results", result_type(outputs))
    items = [relax.VarBinding(var, relax.TupleGetItem(results, place)) for place, var in enumerate(outputs)]
    return [relax.VarBinding(results, value), *items]


def result_type(outputs: list[Any]) -> Any:
    """Return the type of a function with these results."""
    return outputs[0].ty if len(outputs) == 1 else relax.TupleType([var.ty for var in outputs])


def fresh(params: list[Any]) -> list[Any]:
    """Return new variables of the same types."""
    return [relax.Var(param.name, param.ty) for param in params]


def rebound(binding: Any, new: dict[Any, Any]) -> Any:
    """Return a binding with other variables used in its value."""
    if not isinstance(binding, relax.VarBinding):
        return binding
    return relax.VarBinding(binding.var, substituted(binding.value, new))


def operands(value: Any) -> list[Any]:
    """Return the variables that a value in normal form uses, in order, without those in sizes."""
    if isinstance(value, Call):
        return [var for part in [value.op, *value.args] for var in operands(part)]
    if isinstance(value, relax.Tuple):
        return [var for part in value.fields for var in operands(part)]
    if isinstance(value, relax.TupleGetItem):
        return operands(value.tuple_value)
    return [value] if isinstance(value, relax.Var) else []


def substituted(value: Any, new: dict[Any, Any]) -> Any:
    """Return a value in normal form with other variables in it."""
    if isinstance(value, Call):
        op, *args = (substituted(part, new) for part in [value.op, *value.args])
        return Call(op, args, value.attrs, value.ty_args, value.span, value.ty)
    if isinstance(value, relax.Tuple):
        return relax.Tuple([substituted(part, new) for part in value.fields])
    if isinstance(value, relax.TupleGetItem):
        return relax.TupleGetItem(substituted(value.tuple_value, new), value.index)
    return new.get(value, value) if isinstance(value, relax.Var) else value
