"""The part of the Relax table that runs TVM: it imports seeds, splices patterns into them, and runs single passes.

It runs in a process of its own, because what a pass is given may kill TVM. The edges between seed and pattern are
followed in the finished module, whatever splicing says of itself: a pattern's variables get a name of their own first.
"""

# ruff: noqa: ANN401 - TVM's objects have no types

import os
import signal
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

import onnx

import miscompile.targets.tvm.adapter  # noqa: F401 - before TVM, because it makes PyTorch look absent
from miscompile.targets.tvm.relax.functions import operands
from miscompile.targets.tvm.relax.seams import computes, is_plain, replaced
from miscompile.targets.tvm.relax.splice import NoPlaceError, splice
from miscompile.targets.tvm.relax.text import TEXT_ERRORS, parse
from miscompile.targets.tvm.relax.transforms import entry
from miscompile.targets.tvm.relax.vetting import changes

if TYPE_CHECKING:
    from evaluation.oatest.relax.study import PassesAlone, RelaxSeed, SpliceJob

from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

INSIDE = "inside"
"""Prefix of a pattern's variables before it is spliced; a pattern that is called has names of its own."""

JOINTS = frozenset({"bridge", "blend"})
"""Names that splicing gives to what stands between seed and pattern."""


def serve(pipe: Connection, library: str) -> None:
    """Answer (kind, job) until the other end is closed; an interruption is for the parent alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)  # the importer prints what it refuses
    answers: dict[str, Callable[[str, Any], dict[str, Any]]] = {"seed": looked_at, "splice": spliced, "alone": alone}
    while True:
        try:
            kind, job = pipe.recv()
        except EOFError:
            return
        pipe.send(answers[kind](library, job))


def looked_at(library: str, seed: "RelaxSeed") -> dict[str, Any]:
    """Return how many bindings a seed has, or why nothing can be spliced into it."""
    del library
    try:
        module = imported(seed)
    except Exception as error:  # noqa: BLE001 - the importer raises whatever Python has
        return {"why": "the importer refuses it", "message": f"{type(error).__name__}: {error}"[:200]}
    blocks = module["main"].body.blocks
    if len(blocks) != 1 or len(blocks[0].bindings) < 2:
        return {"why": "not one block of two bindings or more"}
    if not relax.analysis.check_well_formed(module):
        return {"why": "the importer makes an ill-formed module"}
    assert not any(origin(one.var) for one in blocks[0].bindings), "a name of ours"
    return {"bindings": len(blocks[0].bindings)}


@lru_cache(1024)
def imported(seed: "RelaxSeed") -> Any:
    """Return a seed as a Relax module, as the adapter imports it."""
    return from_onnx(onnx.ModelProto.FromString(seed.payload), shape_dict={name: list(to) for name, to in seed.empty})


@lru_cache(4096)
def read(library: str, name: str) -> tuple[Any, float]:
    """Return the module of a pattern, with its variables marked, and the CPU time that it took to read its text."""
    found = entry(library, name)
    begin = time.process_time()
    module = parse(found["script"], found["constants"])
    seconds = time.process_time() - begin
    return marked(module), seconds


def marked(module: Any) -> Any:
    """Return the module of a pattern in which every variable that the pattern binds is called INSIDE."""
    function = module["pattern"]
    table: dict[Any, Any] = {}
    blocks = []
    for block in function.body.blocks:
        bound = []
        for one in block.bindings:
            value = replaced(one.value, table)
            table[one.var] = type(one.var)(INSIDE, one.var.ty)
            bound.append(relax.VarBinding(table[one.var], value))
        blocks.append(type(block)(bound))
    body = relax.SeqExpr(blocks, replaced(function.body.body, table))
    module = module.clone()
    renamed = relax.Function(function.params, body, function.ret_ty, True, function.attrs)
    module.update_func(module.get_global_var("pattern"), renamed)
    return module


def spliced(library: str, job: "SpliceJob") -> dict[str, Any]:
    """Return what came of a synthesis: why it was refused or failed, or its CPU time and how it is joined."""
    seed = imported(job.seed)
    pattern, reading = read(library, job.pattern)
    begin = time.process_time()
    try:
        module, facts = splice(seed, pattern, job.number, job.call)
    except NoPlaceError as error:
        return {"refused": str(error)}
    except TEXT_ERRORS as error:  # an ill-formed module among them
        return {"failed": f"{type(error).__name__}: {error}"}
    seconds = time.process_time() - begin
    return {
        "cpu": seconds,
        "reading": reading,
        "formed": relax.analysis.check_well_formed(module),
        "holes": len(pattern["pattern"].params),
        "facts": facts._asdict(),
        "edges": edges(module),
        "bindings": sum(len(block.bindings) for block in module["main"].body.blocks),
    }


def alone(library: str, asked: "PassesAlone") -> dict[str, Any]:
    """Return for each of the passes whether it changes the program, and the seed, when it runs alone; None: no saying.

    A pass that needs arguments, or is refused, says nothing.
    """
    seed = imported(asked.job.seed)
    module, _ = splice(seed, read(library, asked.job.pattern)[0], asked.job.number, asked.job.call)
    return {name: (changes(module, name), changes(seed, name)) for name in asked.passes}


def origin(var: Any) -> str:
    """Return what a bound variable of a finished module is: of the pattern, a joint, or "" for one of the seed."""
    if var.name == INSIDE or var.name == "spliced" or var.name.startswith("spliced_"):
        return INSIDE
    return "joint" if var.name in JOINTS else ""


def edges(module: Any) -> dict[str, bool]:
    """Return which edges `main` has: `into` the pattern from a bound value of the seed, `fed` from one that depends on
    an input, `out` from the pattern into an operation of the seed, `alive` where a result of the program is behind one.

    Joints are seen through, and towards operations also tuples of the seed.
    """
    main = module["main"]
    bound = [one for block in main.body.blocks for one in block.bindings]
    values = {one.var: one for one in bound}
    depends, behind = set(main.params), set()
    found = dict.fromkeys(("into", "fed", "out", "alive"), False)
    for one in bound:
        used = used_by(one)
        if not depends.isdisjoint(used):
            depends.add(one.var)
        if origin(one.var) == INSIDE:
            sources = [var for var in through(used, values, False) if var in values and not origin(var)]
            found["into"] |= bool(sources)
            found["fed"] |= any(var in depends for var in sources)
        elif not origin(one.var) and computes(one) and any(map(is_inside, through(used, values, True))):
            found["out"] = True
            behind.add(one.var)
        if not behind.isdisjoint(used):
            behind.add(one.var)
    found["alive"] = main.body.body in behind or not behind.isdisjoint(operands(main.body.body))
    return found


def used_by(binding: Any) -> list[Any]:
    """Return the variables that a binding uses."""
    if is_plain(binding):
        return operands(binding.value)
    return list(relax.analysis.free_vars(getattr(binding, "value", binding.var)))


def is_inside(var: Any) -> bool:
    """Tell whether a variable is bound by the pattern."""
    return origin(var) == INSIDE


def through(used: Iterable[Any], values: dict[Any, Any], tuples: bool) -> list[Any]:
    """Return what the variables `used` stand for when joints, and with `tuples` the seed's tuples, are looked through.

    `values` has the bindings by their variables.
    """
    found, todo = [], list(used)
    while todo:
        var = todo.pop()
        one = values.get(var)
        seen_through = one is not None and (
            origin(var) == "joint" or (tuples and not origin(var) and is_plain(one) and not computes(one))
        )
        if seen_through:
            todo += used_by(one)
        else:
            found.append(var)
    return found
