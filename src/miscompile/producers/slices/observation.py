"""Observation of a whole model: types and intervals of its inner values, measured in a child process.

Inner values of real models have intervals that random feeds do not reach: a normalised activation, a mask of zeros and
large negative numbers, a computed shape. The feeds of a slice are drawn from the observed intervals.
"""

import json
import random
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from miscompile.base.child import collect
from miscompile.base.dtypes import DTYPES, PLAIN, is_float
from miscompile.base.errors import ModelError
from miscompile.core.tensor import Array, Tensor
from miscompile.graph.emit import emit
from miscompile.graph.model import Model, TensorType
from miscompile.graph.typing import static_types
from miscompile.ops.values import Range, draw
from miscompile.producers.slices.binding import bindings, fed

_CHILD = "miscompile.producers.slices.observer"
_MEMORY = 4 << 30
_WHOLE_NUMBERS = (5, 1, 3)
"""Largest integer that is fed, one for each feed: integer inputs are mostly indices, labels and masks."""

_MOST_WORSE = 3
"""Bindings in a row that are no better than an earlier one, after which no other is tried."""

_SPAN = 3.0

_LARGEST = 1e4
"""Observed floats are clipped to this magnitude: in a mask, -10,000 has the same effect as a larger stand-in for minus
infinity.
"""


@dataclass(frozen=True, slots=True)
class ObservedValue:
    """Facts about one value: its type with fixed sizes, and bounds of its elements where it was observed.

    `value` holds the elements of a small integer tensor that was the same on every feed.
    """

    type: TensorType
    range: Range | None = None
    value: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Observed:
    """A model with fixed sizes, and its observed values by name. `ran`: every node was observed."""

    model: Model
    values: Mapping[str, ObservedValue]
    ran: bool


def observed(model: Model, rng: random.Random, seconds: float = 60.0) -> Observed:
    """Return the binding of `model` (as `binding.normalised` makes it) under which most of its nodes run.

    It runs on drawn inputs in a child process, for at most `seconds` in all. Values that were not computed have
    inferred types and no range. Raises ModelError when the inputs are no tensors of known rank.
    """
    best: Observed | None = None
    worse = 0
    end = time.monotonic() + seconds
    for bound in bindings(model):
        left = end - time.monotonic()
        if best is not None and left <= 0:
            break
        try:
            found = known(bound, _child_lines(bound, rng, min(left, seconds / 2)))
        except ModelError:
            continue  # these sizes contradict declared inner types
        better = best is None or len(found.values) > len(best.values) or (found.ran and not best.ran)
        best, worse = (found, 0) if better or best is None else (best, worse + 1)
        if best.ran or worse == _MOST_WORSE:
            break
    if best is None:
        raise ModelError("no sizes fit the model")
    return best


def ran(model: Model, rng: random.Random, seconds: float) -> set[str]:
    """Return the names of the values of `model`, whose sizes are fixed, that are computed within `seconds`."""
    return {line["name"] for line in _child_lines(model, rng, seconds, feeds=1)}


def known(model: Model, lines: Iterable[Mapping[str, Any]]) -> Observed:
    """Return the values of `model` from the observer's output `lines`, completed by inference."""
    values = {name: ObservedValue(kind) for name, kind in static_types(model).items()}
    told: dict[str, list[Mapping[str, Any]]] = {}
    rows = [0] * len(_WHOLE_NUMBERS)
    for line in lines:
        told.setdefault(line["name"], []).append(line)
        rows[line["feed"]] += 1
    given = {info.name: told.pop(info.name, []) for info in fed(model.graph)}
    for name, seen_lines in told.items():
        seen = _summary(seen_lines)
        if seen is None:
            values.pop(name, None)
        else:
            values[name] = seen
    best = rows.index(max(rows))  # an index out of range ends a feed early
    for info in fed(model.graph):
        ranges = _ranges(info.type)
        if info.name in values and ranges:
            fed_line = next((line for line in given[info.name] if line["feed"] == best), None)
            span = ranges[best] if fed_line is None or not ranges[best].integral else _span([fed_line])
            values[info.name] = ObservedValue(values[info.name].type, span)
    made = [name for node in model.graph.nodes for name in node.outputs if name]
    return Observed(model, values, all(name in told for name in made))


def _ranges(kind: object) -> tuple[Range, ...]:
    """Return the range of an input for each feed; empty for types that cannot be drawn."""
    if not isinstance(kind, TensorType) or kind.dtype not in PLAIN:
        return ()
    if kind.dtype == "bool":
        return tuple(Range(0, 1, integral=True) for _ in _WHOLE_NUMBERS)
    if is_float(kind.dtype):
        return tuple(Range(-_SPAN, _SPAN, integral=False) for _ in _WHOLE_NUMBERS)
    return tuple(Range(0, most, integral=True) for most in _WHOLE_NUMBERS)


def _child_lines(
    model: Model, rng: random.Random, seconds: float, feeds: int = len(_WHOLE_NUMBERS)
) -> list[dict[str, Any]]:
    """Return the lines that the observer printed within its time limit; none when inputs cannot be drawn."""
    arrays: dict[str, Array] = {}
    inputs: list[tuple[str, str]] = []
    for place, info in enumerate(fed(model.graph)):
        ranges = _ranges(info.type)
        if not isinstance(info.type, TensorType) or not ranges:
            return []
        inputs.append((info.name, info.type.dtype))
        shape = tuple(int(size) for size in info.type.shape or () if isinstance(size, int))
        for row, span in enumerate(ranges[:feeds]):
            arrays[f"{row}_{place}"] = draw(rng, info.type.dtype, shape, span)
    with TemporaryDirectory(prefix="miscompile-") as name:
        folder = Path(name)
        (folder / "model.onnx").write_bytes(emit(model))
        np.savez(folder / "feeds.npz", **arrays)  # type: ignore[arg-type]
        notes = {"inputs": inputs, "feeds": feeds}
        (folder / "names.json").write_text(json.dumps(notes), "utf-8")
        told = collect([sys.executable, "-m", _CHILD, name, str(_MEMORY)], seconds=seconds, folder=folder).stdout
    whole = told[: told.rfind(b"\n") + 1]  # the last line may have been cut off
    return [json.loads(line) for line in whole.splitlines()]


def _summary(lines: Sequence[Mapping[str, Any]]) -> ObservedValue | None:
    """Return what all feeds together say of a value; None when its type depends on what is fed."""
    first = lines[0]
    kind = TensorType(first["dtype"], tuple(first["shape"]))
    if any((line["dtype"], tuple(line["shape"])) != (kind.dtype, kind.shape) for line in lines[1:]):
        return None
    if kind.dtype not in DTYPES:
        return None
    return ObservedValue(kind, _span(lines), _constant(kind, lines))


def _span(lines: Sequence[Mapping[str, Any]]) -> Range | None:
    if any(line["lo"] is None for line in lines):
        return None
    integral = all(line["integral"] for line in lines)
    lo, hi = min(line["lo"] for line in lines), max(line["hi"] for line in lines)
    if is_float(lines[0]["dtype"]):
        lo, hi = (min(max(end, -_LARGEST), _LARGEST) for end in (lo, hi))
    return Range(lo, hi, integral)


def _constant(kind: TensorType, lines: Sequence[Mapping[str, Any]]) -> Tensor | None:
    elements = [line.get("elements") for line in lines]
    if elements[0] is None or any(other != elements[0] for other in elements[1:]):
        return None
    shape = tuple(lines[0]["shape"])
    return Tensor(kind.dtype, np.asarray(elements[0], DTYPES[kind.dtype].storage).reshape(shape))
