"""Vetting of a pattern as a part of programs, and observation of the passes that it triggers, in a process of its
own.

Tests of passes often contain loop programs that were never meant to run: they leave results unwritten, write to
their operands, or cannot be built. Such a pattern differs between any two builds and would cause false findings.
"""

# ruff: noqa: ANN401 - TVM's objects have no types

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import relax, tirx
from tvm.ir import Call

from miscompile.core.run import Build
from miscompile.targets.tvm.adapter import Tvm
from miscompile.targets.tvm.pipelines import CONV_LAYOUTS, FAST_BUILD
from miscompile.targets.tvm.relax.fragments import PATTERN, sizes_of
from miscompile.targets.tvm.relax.splice import lawful
from miscompile.targets.tvm.relax.text import TEXT_ERRORS
from miscompile.targets.tvm.sequences import NEEDS, PASSES

_MADE = {"DecomposeOps": "DecomposeOpsForInference", "DataflowInsertInPlaceCalls": "DataflowUseInplaceCalls"}
"""Passes whose name differs from that of the function that makes them."""

_GIVEN = {"ConvertLayout": (CONV_LAYOUTS,)}

_KNOWN: dict[str, str] = {}
"""A cache of the faults of loop programs, because tests share them."""

_FILLS = (0, 0x5A)
"""The bytes of result buffers before a loop program runs, which reveal unwritten results."""

_TOLERANCE = 1e-2
"""The relative difference allowed between the two builds; a pattern with a larger one is too ill-conditioned."""


def changes(module: Any, name: str) -> bool | None:
    """Tell whether the pass called `name` changes `module` when it runs alone, after the passes that it presupposes.

    None if the pass needs arguments or raises.
    """
    made = _MADE.get(name, name)
    given = PASSES.get(made, _GIVEN.get(made, ()))
    try:
        for needed in NEEDS.get(made, ()):
            module = getattr(relax.transform, needed)(*PASSES.get(needed, ()))(module)
        before = tvm_ffi.structural_hash(module)
        return bool(tvm_ffi.structural_hash(getattr(relax.transform, made)(*given)(module)) != before)
    except TEXT_ERRORS:
        return None


def triggered(module: Any, names: Iterable[str]) -> tuple[str, ...]:
    """Return those of the passes called `names` that change `module` when they run alone."""
    return tuple(sorted(name for name in set(names) if changes(module, name)))


def fault(module: Any, target: Tvm) -> str:
    """Return why the pattern in `module` must not be used; an empty text if it may be used.

    The pattern alone is built without optimisation and with all optimisations, and runs on two draws of operands.
    """
    for function, values, results in loop_calls(module):
        key = f"{tvm_ffi.structural_hash(function)} {values} {results}"
        if key not in _KNOWN:
            _KNOWN[key] = loop_fault(function, values, results)
        if _KNOWN[key]:
            return _KNOWN[key]
    whole = called(module)
    machines = []
    for level in ("off", "full"):
        try:
            machines.append(relax.VirtualMachine(target.compiled(whole, Build(level)), tvm.cpu())["main"])
        except TEXT_ERRORS as error:
            return f"not built at {level}: {' '.join(str(error).split())[-120:]}"
    kinds = [param.ty for param in whole["main"].params]
    most = lawful(relax.BlockBuilder(module), module[PATTERN], kinds)
    if most is None:
        return "integers that may overflow"
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        feed = [drawn(kind, rng, min(most, 3)) for kind in kinds]
        try:
            plain, full = ([one.numpy() for one in machine(*map(tvm.runtime.tensor, feed))] for machine in machines)
        except TEXT_ERRORS as error:
            return f"not run: {' '.join(str(error).split())[-120:]}"
        if not all(map(close, plain, full)):
            return "differs between off and full by itself"
    return ""


def called(module: Any) -> Any:
    """Return `module` with its pattern as `main`."""
    table = {place: function for place, function in module.functions.items() if place.name_hint != PATTERN}
    main = module[PATTERN].with_attr("global_symbol", "main")
    return tvm.IRModule({tvm.ir.GlobalVar("main"): main, **table})


def loop_calls(module: Any) -> Iterator[tuple[Any, list[Any], list[Any]]]:
    """Yield each call of a loop program, with the types of its operands and those of its results."""
    for function in module.functions.values():
        if not isinstance(function, relax.Function):
            continue
        for binding in itertools.chain.from_iterable(block.bindings for block in function.body.blocks):
            value = binding.value
            if isinstance(value, Call) and getattr(value.op, "name", "") == "relax.call_tir":
                (kind,) = value.ty_args
                results = list(kind.fields) if isinstance(kind, relax.TupleType) else [kind]
                yield module[value.args[0]], [one.ty for one in value.args[1].fields], results


def loop_fault(function: Any, values: list[Any], results: list[Any]) -> str:
    """Return the fault of a loop program that is called on `values`; an empty text if it has none."""
    if not isinstance(function, tirx.PrimFunc):
        return "no loop program"
    if any(sizes_of(kind) is None for kind in [*values, *results]):
        return "loops on what is no tensor of known sizes"
    try:
        module = tvm.IRModule({"loops": function.with_attr("global_symbol", "loops")})
        run = tvm.compile(module, target=tvm.target.Target(FAST_BUILD))["loops"]
        rng = np.random.default_rng(0)
        feed = [drawn(kind, rng) for kind in values]
        given = [tvm.runtime.tensor(one) for one in feed]
        seen = []
        for fill in _FILLS:
            made = [filled(kind, fill) for kind in results]
            run(*given, *made)
            seen.append([one.numpy().tobytes() for one in made])
    except TEXT_ERRORS as error:
        return f"loops not built: {' '.join(str(error).split())[-120:]}"
    if seen[0] != seen[1]:
        return "loops that leave results unwritten"
    if any(one.numpy().tobytes() != before.tobytes() for one, before in zip(given, feed, strict=True)):
        return "loops that write to their operands"
    return ""


def drawn(kind: Any, rng: np.random.Generator, most: int = 3) -> Any:
    """Return an array of a tensor's type: integers from 0 to `most`, or floats around 0."""
    sizes, dtype = sizes_of(kind), str(kind.dtype)
    assert sizes is not None
    if dtype == "bool":
        return rng.integers(0, 2, sizes).astype(bool)
    if "float" in dtype:
        return np.asarray(rng.standard_normal(sizes), dtype)
    return np.asarray(rng.integers(0, most + 1, sizes), dtype)


def filled(kind: Any, fill: int) -> Any:
    """Return a tensor whose bytes are all `fill`; for booleans at most 1."""
    sizes, dtype = sizes_of(kind), np.dtype(str(kind.dtype))
    assert sizes is not None
    fill = min(fill, 1) if dtype.kind == "b" else fill
    count = int(np.prod(sizes, dtype=int))
    return tvm.runtime.tensor(np.full(count * dtype.itemsize, fill, np.uint8).view(dtype).reshape(sizes))


def close(plain: Any, full: Any) -> bool:
    """Tell whether two results are close where both are finite."""
    one, other = plain.astype(np.float64), full.astype(np.float64)
    known = np.isfinite(one) & np.isfinite(other)
    scale = np.abs(one[known]).max(initial=1.0)
    return bool(np.all(np.abs(one - other)[known] <= _TOLERANCE * scale))
