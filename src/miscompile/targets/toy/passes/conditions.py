"""Rewrites of truth values, and of the calls and branches that they choose between."""

from dataclasses import replace

import numpy as np

from miscompile.targets.toy.ir import BRANCHES, Bugs, Code, ToyCall
from miscompile.targets.toy.passes.cleanup import same_code
from miscompile.targets.toy.passes.rewriting import all_equal, kind_of, only_use, same_shape, swapped_pairs

_OPPOSITE = {"Less": "GreaterOrEqual", "Greater": "LessOrEqual", "LessOrEqual": "Greater", "GreaterOrEqual": "Less"}
_DUAL = {"And": "Or", "Or": "And"}


def negate_comparison(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """not (x < y) becomes x >= y for integers; a comparison with NaN is false both ways."""
    del bugs
    inner = code.made_by(call.inputs[0], *_OPPOSITE) if call.op == "Not" else None
    if inner is None or kind_of(code, inner.inputs[0]) not in tuple("iu"):
        return False
    code.swap(call, ToyCall(_OPPOSITE[inner.op], inner.inputs, call.outputs))
    return True


def de_morgan(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """(not x) and (not y) becomes not (x or y), and the reverse."""
    del bugs
    if call.op not in _DUAL:
        return False
    inner = [code.made_by(name, "Not") for name in call.inputs]
    operands = tuple(one.inputs[0] for one in inner if one is not None and only_use(code, one.out))
    if len(operands) != 2:
        return False
    value = code.fresh(np.dtype(np.bool_), code.shape(call.out))
    code.swap(call, ToyCall(_DUAL[call.op], operands, (value,)), ToyCall("Not", (value,), call.outputs))
    return True


def settle_boolean(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """x or true becomes true, in the shape of the result; x xor true becomes not x."""
    del bugs
    shape = code.shape(call.out) if call.op in ("Or", "Xor") else None
    if shape is None:
        return False
    for value, other in swapped_pairs(call):
        if not all_equal(code.constant(other), True):
            continue
        if call.op == "Or":
            code.bypass(call, code.add_constant(np.ones(shape, np.bool_)))
            return True
        if same_shape(code, value, call.out):
            code.swap(call, ToyCall("Not", (value,), call.outputs))
            return True
    return False


def turn_where(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Where(not c, x, y) becomes Where(c, y, x)."""
    del bugs
    inner = code.made_by(call.inputs[0], "Not") if call.op == "Where" else None
    if inner is None:
        return False
    code.swap(call, ToyCall("Where", (inner.inputs[0], call.inputs[2], call.inputs[1]), call.outputs))
    return True


def merge_where(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Where(c, Where(c, x, y), z) becomes Where(c, x, z), if the result does not owe its shape to y."""
    del bugs
    if call.op != "Where":
        return False
    for place in (1, 2):
        inner = code.made_by(call.inputs[place], "Where")
        if inner is None or inner.inputs[0] != call.inputs[0]:
            continue
        inputs = list(call.inputs)
        inputs[place] = inner.inputs[place]
        shapes = [code.shape(name) for name in inputs]
        known = [shape for shape in shapes if shape is not None]
        if len(known) == len(shapes) and np.broadcast_shapes(*known) == code.shape(call.out):
            code.swap(call, ToyCall("Where", tuple(inputs), call.outputs))
            return True
    return False


def select_branch(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """An If with a constant condition becomes the calls of the branch that it takes."""
    del bugs
    condition = code.constant(call.inputs[0]) if call.op == "If" else None
    if condition is None:
        return False
    _inline(code, call, call.get(BRANCHES[0] if condition.all() else BRANCHES[1]))
    return True


def merge_branches(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """An If whose branches compute the same becomes the calls of one of them."""
    del bugs
    if call.op != "If" or not same_code(call.get(BRANCHES[0]), call.get(BRANCHES[1])):
        return False
    _inline(code, call, call.get(BRANCHES[0]))
    return True


def turn_branches(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """If(not c) becomes If(c) with its branches exchanged."""
    del bugs
    inner = code.made_by(call.inputs[0], "Not") if call.op == "If" else None
    if inner is None:
        return False
    bodies = {BRANCHES[0]: call.get(BRANCHES[1]), BRANCHES[1]: call.get(BRANCHES[0])}
    code.swap(call, ToyCall("If", (inner.inputs[0], *call.inputs[1:]), call.outputs, bodies))
    return True


def drop_branch_results(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Results of an If that nothing reads leave both branches; one result stays."""
    del bugs
    if call.op != "If":
        return False
    kept = [place for place, name in enumerate(call.outputs) if code.uses(name)]
    if not kept or len(kept) == len(call.outputs):
        return False
    bodies = {}
    for name in BRANCHES:
        body = call.get(name).copy()
        body.outputs = [body.outputs[place] for place in kept]
        bodies[name] = body
    code.swap(call, ToyCall("If", call.inputs, tuple(call.outputs[place] for place in kept), bodies))
    return True


def drop_captures(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Values that no branch of an If reads are no operands of it."""
    del bugs
    if call.op != "If":
        return False
    bodies = [call.get(name) for name in BRANCHES]
    kept = [
        place for place, name in enumerate(call.inputs[1:])
        if any(body.inputs[place] and body.uses(body.inputs[place]) for body in bodies)
    ]  # fmt: skip
    if len(kept) == len(call.inputs) - 1:
        return False
    changed = {}
    for name, body in zip(BRANCHES, bodies, strict=True):
        copied = body.copy()
        copied.inputs = tuple(body.inputs[place] for place in kept)
        changed[name] = copied
    code.swap(call, ToyCall("If", (call.inputs[0], *(call.inputs[1 + i] for i in kept)), call.outputs, changed))
    return True


def _inline(code: Code, call: ToyCall, body: Code) -> None:
    """Put the calls of a branch in the place of the If `call`, under names of their own."""
    names = dict(zip(body.inputs, call.inputs[1:], strict=True))
    for name, value in body.constants.items():
        names[name] = code.add_constant(value)
    calls = []
    for inner in body.calls:
        for name in filter(None, inner.outputs):
            names[name] = code.fresh()
            if name in body.types:
                code.types[names[name]] = body.types[name]
        named = tuple(names.get(name, "") for name in inner.inputs)
        calls.append(replace(inner, inputs=named, outputs=tuple(names.get(name, "") for name in inner.outputs)))
    code.swap(call, *calls)
    for outer, name in zip(call.outputs, body.outputs, strict=True):
        if outer:
            code.rename(outer, names[name])
