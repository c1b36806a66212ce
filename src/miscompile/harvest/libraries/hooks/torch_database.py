"""Instances from the operator database in PyTorch's wheel: every operator and module with its sample inputs.

`torch.testing._internal` contains the database of PyTorch's test suite: for each operator, random generators of
inputs for every element type. The seed is a digest of the operator and the type, so that two harvests of one wheel
are equal. If the function of an entry belongs to the test suite, it is called once with its inputs, and its calls of
torch are recorded.

Run as `python -m miscompile.harvest.libraries.hooks.torch_database OUT SAMPLES REFERENCES [NAME...]`.
"""

# ruff: noqa: ANN401 - entries of the database

import json
import random
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from miscompile.base.digest import digest_bytes
from miscompile.harvest.libraries.hooks.recording import Collector, Lines, NotEncodable
from miscompile.harvest.libraries.hooks.torch_calls import (
    Construction,
    called,
    called_module,
    start,
    watch_construction,
)
from miscompile.harvest.libraries.hooks.torch_names import TorchOperator, modules, operators
from miscompile.harvest.patterns.hooks.recording import line_of

_CHOICES = (
    (torch.float32, torch.float64),
    (torch.int64, torch.int32, torch.uint8),
    (torch.bool,),
    (torch.float16,),
    (torch.bfloat16,),
    (torch.complex64,),
)
"""The requested element types: of each group the first that an operator supports."""

_MODULE_TYPES = 3
"""The requested element types for a module; fewer, because most modules only accept floats."""

_UNLIMITED = 1 << 30
_AHEAD = 4
"""The number of inputs examined per kept input, because many are duplicates."""


@dataclass(frozen=True, slots=True)
class SampleLimits:
    """The most inputs for an operator and an element type: samples, and the longer list of references."""

    samples: int
    references: int


def collect(entry: Any, limits: SampleLimits, seen: Construction, into: Collector) -> None:
    """Add the instances of an entry for an operator to `into`."""
    operator, before = _operator(entry), sum(into.kept.values())
    for dtype in _types(entry.supported_dtypes("cpu")):
        into.test = f"{entry.formatted_name} {str(dtype).removeprefix('torch.')}"
        _collect(operator, entry, _inputs(entry, "sample_inputs", dtype, into), limits.samples, seen, into)
    dtype = next(_types(entry.supported_dtypes("cpu")), None)
    if dtype is not None and limits.references:
        into.test = f"{entry.formatted_name} {str(dtype).removeprefix('torch.')} reference"
        _collect(operator, entry, _inputs(entry, "reference_inputs", dtype, into), limits.references, seen, into)
    if before == sum(into.kept.values()) and not into.left:
        into.leave("an entry that calls no operator of torch, or none in a new way", entry.name)


def _operator(entry: Any) -> TorchOperator | None:
    """Return the operator that an entry calls; None when it calls a function of the test suite."""
    path = f"torch.{entry.name}"
    found = operators().get(entry.op)
    if found is not None and found.form == "function" and _at(path) is entry.op:
        return TorchOperator(path, "function")
    return found


def _at(path: str) -> Any:
    found: Any = torch
    for part in path.split(".")[1:]:
        found = getattr(found, part, None)
    return found


def _types(supported: Iterable[Any]) -> Iterator[Any]:
    here = frozenset(supported)
    for group in _CHOICES:
        yield from islice((dtype for dtype in group if dtype in here), 1)


def _inputs(entry: Any, kind: str, dtype: Any, into: Collector) -> Iterator[Any]:
    """Yield the inputs that an entry generates, up to an exception of the generator, which is counted."""
    _seed(f"{entry.formatted_name} {kind} {dtype}")
    try:
        yield from getattr(entry, kind)("cpu", dtype, requires_grad=False)
    except Exception as error:  # noqa: BLE001 - generators of 700 operators; the reason is counted
        into.leave(f"its inputs cannot be generated ({line_of(error)[:60]})", entry.name)


def _seed(text: str) -> None:
    """Seed all random generators that the generators of inputs use."""
    seed = int(digest_bytes(text.encode())[:8], 16)
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


def _collect(
    operator: TorchOperator | None, entry: Any, inputs: Iterator[Any], limit: int, seen: Construction, into: Collector
) -> None:
    """Use inputs until `limit` new instances are found."""
    before = sum(into.kept.values())
    for sample in islice(inputs, limit * _AHEAD):
        if operator is None:
            _call(entry, sample, into)
        else:
            _take(operator, entry, sample, seen, into)
        if sum(into.kept.values()) - before >= limit:
            break


def _take(operator: TorchOperator, entry: Any, sample: Any, seen: Construction, into: Collector) -> None:
    try:
        args = (sample.input, *sample.args)
        into.take(called(operator, entry.op, args, sample.kwargs, seen))
    except NotEncodable as error:
        into.leave(str(error), operator.api)


def _call(entry: Any, sample: Any, into: Collector) -> None:
    """Call the function of an entry while calls of torch are recorded."""
    stop = start(into)
    try:
        with torch.no_grad():
            entry.op(sample.input, *sample.args, **sample.kwargs)
    except Exception as error:  # noqa: BLE001 - an operator may refuse inputs of another version; counted
        into.leave(f"a function of the test suite raises {type(error).__name__}", entry.name)
    finally:
        stop()


def collect_module(entry: Any, limits: SampleLimits, seen: Construction, into: Collector) -> None:
    """Add the instances of an entry for a module to `into`."""
    if entry.module_cls not in modules():
        into.leave("a module that is not public", entry.name)
        return
    for dtype in islice(_types(entry.dtypes), _MODULE_TYPES):
        into.test = f"{entry.formatted_name} {str(dtype).removeprefix('torch.')}"
        for given in islice(_module_inputs(entry, dtype, into), limits.samples):
            _take_module(entry, given, dtype, seen, into)


def _module_inputs(entry: Any, dtype: Any, into: Collector) -> Iterator[Any]:
    """Yield the parameters of the constructor and of the call of a module, as for operators."""
    _seed(into.test)
    try:
        yield from entry.module_inputs_func(entry, device="cpu", dtype=dtype, requires_grad=False, training=False)
    except Exception as error:  # noqa: BLE001 - as for operators
        into.leave(f"its inputs cannot be generated ({line_of(error)[:60]})", entry.name)


def _take_module(entry: Any, given: Any, dtype: Any, seen: Construction, into: Collector) -> None:
    """Construct a module from its entry, and record the construction with the inputs of its call.

    The test suite changes a module's element type after its construction, which is recorded as a parameter.
    """
    made, inputs = given.constructor_input, given.forward_input
    if inputs is None:
        into.leave("a module that is never called", entry.name)
        return
    try:
        module = entry.module_cls(*made.args, **made.kwargs).to(dtype)
        into.take(called_module(module, inputs.args, inputs.kwargs, seen))
    except NotEncodable as error:
        into.leave(str(error), entry.name)
    except Exception as error:  # noqa: BLE001 - a constructor may refuse its entry's parameters; counted
        into.leave(f"cannot be constructed ({line_of(error)[:60]})", entry.name)


def main(words: Sequence[str]) -> int:
    """Harvest the database into the folder OUT, with a line of JSON on stdout for each entry."""
    out, limits, chosen = Path(words[0]), SampleLimits(int(words[1]), int(words[2])), frozenset(words[3:])
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    seen = Construction()
    watch_construction(seen)  # generators of inputs construct modules, some when the database is imported
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.common_modules import module_db

    lines = Lines(out)
    into = Collector(lines.instance, "database", _UNLIMITED)
    work = [(collect, entry) for entry in op_db] + [(collect_module, entry) for entry in module_db]
    work = [(function, entry) for function, entry in work if not chosen or entry.formatted_name in chosen]
    for number, (function, entry) in enumerate(work, 1):
        before = sum(into.kept.values())
        function(entry, limits, seen, into)
        fresh = sum(into.kept.values()) - before
        lines.ran(entry.formatted_name, "passed" if fresh else "empty")
        lines.leave(into.left)
        told = {"operator": entry.formatted_name, "instances": fresh, "number": number, "of": len(work)}
        print(json.dumps(told), flush=True)
    lines.write(exit=0)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
