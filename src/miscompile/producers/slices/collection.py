"""A collection of seeds: slices of all models in a folder, stored in a folder that every lane reads.

Slicing runs whole models, which is slow and depends on the clock when a time limit is exceeded. It is therefore done
once for a campaign. Each slice is then an ONNX file, and `slices.json` describes the feeds of its inputs.
"""

import json
import math
import os
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from miscompile.base.digest import digest_bytes
from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import InputError, MiscompileError, ModelError, StoreError, UsageError, write_error
from miscompile.base.rng import stream
from miscompile.base.wording import counted
from miscompile.core.events import ProgressListener
from miscompile.core.tensor import Tensor
from miscompile.graph.check import check
from miscompile.graph.emit import emit
from miscompile.graph.model import Model, TensorType
from miscompile.graph.read import load
from miscompile.ops.seed import Seed, SeedOrigin
from miscompile.ops.values import Range
from miscompile.producers.slices.binding import fed, normalised
from miscompile.producers.slices.observation import Observed, observed
from miscompile.producers.slices.scaling import scaled
from miscompile.producers.slices.slices import SliceLimits, SliceTally, kind_of, slices, unfit

INDEX = "slices.json"
_FORMAT = 1
_IR_VERSION = 10
_MOST = 2000
_MOST_BYTES = 512 << 20

_WIDER = 6
"""Powers of two by which slices may exceed the limits before they are scaled down."""


@dataclass(frozen=True, slots=True)
class FittingInput:
    """Sizes of an input of a model, and the range of its elements, that the model has run with."""

    name: str
    shape: tuple[int, ...]
    range: Range


@dataclass(frozen=True, slots=True)
class Collection:
    """Seeds, the number of `models` they come from, one line for each skipped file, and other `notes`.

    `inputs` are inputs on which the only model runs as a whole on onnx's reference evaluator (empty: none are known).
    """

    seeds: tuple[Seed, ...]
    models: int
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    inputs: tuple[FittingInput, ...] = ()

    @property
    def operators(self) -> Counter[str]:
        """Operators with the number of slices that contain them."""
        return Counter(op for seed in self.seeds for op in set(seed.operators))

    def summary(self) -> str:
        """Return one line: models, slices, operators."""
        slices, models = counted(len(self.seeds), "slice"), counted(self.models, "model")
        return f"{slices} of {models}, with {counted(len(self.operators), 'operator')}"


def models_below(folder: Path) -> list[Path]:
    """Return every `*.onnx` file below `folder`, in order. Raises UsageError when there is none."""
    found = sorted(path for path in folder.rglob("*.onnx") if path.is_file())
    if not found:
        raise UsageError(f"there is no *.onnx file in {folder}")
    return found


def collect(
    paths: Iterable[Path],
    cut: SliceLimits,
    seed: int = 0,
    seconds: float = 60.0,
    on_progress: ProgressListener | None = None,
    end: float = math.inf,
) -> Collection:
    """Cut the models at `paths` into slices.

    `seconds` limits the observation of one model, and no slice is cut after the time `end` of the monotonic clock;
    `on_progress` receives a line about each model. Files without a
    valid ONNX model are skipped, each with a line. Raises UsageError when none is left.
    """
    kept: dict[str, Seed] = {}
    skipped: list[str] = []
    tally, models, size = SliceTally(), 0, 0
    inputs: tuple[FittingInput, ...] = ()
    for path in paths:
        if on_progress is not None:
            on_progress(f"cutting {path.name} into slices")
        try:
            pieces = _pieces(path, cut, seed, seconds, tally, end)
        except (MiscompileError, ValueError, MemoryError) as error:  # ValueError: protobuf's size limit
            skipped.append(_line(path, error))
            continue
        models += 1
        inputs = pieces.inputs
        for piece in pieces.seeds:
            if len(kept) < _MOST and size < _MOST_BYTES and kept.setdefault(kind_of(piece), piece) is piece:
                size += sum(value.array.nbytes for value in piece.graph.initializers.values())
    if not models:
        raise UsageError(f"none of the models can be used: {'; '.join(skipped)}")
    known = inputs if models == 1 else ()
    return Collection(tuple(kept.values()), models, tuple(skipped), tally.lines(), known)


def _pieces(path: Path, cut: SliceLimits, seed: int, seconds: float, tally: SliceTally, end: float) -> Collection:
    model = load(path)
    check(model)
    return slices_of(model, path.name, cut, seed, seconds, tally, end)


def slices_of(
    model: Model,
    name: str,
    cut: SliceLimits,
    seed: int = 0,
    seconds: float = 60.0,
    tally: SliceTally | None = None,
    end: float = math.inf,
) -> Collection:
    """Return the slices of a checked `model`, whose sources begin with `name`; those of large values are scaled down.

    `seconds` limits the observation, and again the runs of smaller slices; none is cut after the time `end`. Raises
    ModelError for inputs of other kinds than tensors.
    """
    tally = tally if tally is not None else SliceTally()
    whole = observed(normalised(model), stream(seed, "observe", name), seconds)
    if not whole.ran:
        tally.reasons[f"{name}: not all runs on onnx's reference evaluator, some intervals are made up"] += 1
    wide = replace(cut, weights=cut.weights << _WIDER, elements=cut.elements << _WIDER)
    every = slices(whole, name, wide, stream(seed, "slices", name), tally)
    chosen = list(every if end == math.inf else takewhile(lambda _: time.monotonic() < end, every))
    found = scaled(chosen, stream(seed, name), seconds)
    reasons = [unfit(piece, cut) for piece in found]
    tally.reasons.update(filter(None, reasons))
    seeds = tuple(piece for piece, reason in zip(found, reasons, strict=True) if not reason)
    return Collection(seeds, 1, inputs=_fitting(whole))


def _fitting(whole: Observed) -> tuple[FittingInput, ...]:
    """Return inputs with which a model runs; none when some node did not run, or an input's range is not known."""
    found = []
    for info in fed(whole.model.graph) if whole.ran else ():
        seen = whole.values.get(info.name)
        if seen is None or seen.range is None:
            return ()
        shape = tuple(int(size) for size in seen.type.shape or () if isinstance(size, int))
        found.append(FittingInput(info.name, shape, seen.range))
    return tuple(found)


def _line(path: Path, error: BaseException) -> str:
    message = " ".join(str(error).split()) or type(error).__name__
    told = message.removeprefix(f"model '{path}': ").removeprefix(f"cannot read model '{path}': ")
    return f"{path.name} is skipped: {told}"


def keep(collection: Collection, folder: Path) -> None:
    """Write a collection to `folder`, the index last, so that an interrupted write leaves no index.

    Raises StoreError when it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        rows = [_row(seed, folder) for seed in collection.seeds]
        data = {
            "format": _FORMAT,
            "models": collection.models,
            "skipped": list(collection.skipped),
            "notes": list(collection.notes),
            "inputs": [[one.name, one.shape, *_span(one.range)] for one in collection.inputs],
            "slices": rows,
        }
        unready = folder / f"{INDEX}.part"
        unready.write_text(json.dumps(data, indent=1), "utf-8")
        os.replace(unready, folder / INDEX)
    except OSError as error:
        raise write_error(f"slices to {folder}", error) from None


def _row(seed: Seed, folder: Path) -> dict[str, Any]:
    data = emit(Model(seed.graph, {"": seed.opset}, (), _IR_VERSION))
    file = f"{digest_bytes(data)}.onnx"
    (folder / file).write_bytes(data)
    return {
        "file": file,
        "source": seed.source,
        "ranges": {name: _span(span) for name, span in seed.ranges.items()},
        "pinned": {name: value.array.ravel().tolist() for name, value in seed.pinned.items()},
        "origin": None if seed.origin is None else seed.origin.as_json(),
        "corpus": seed.corpus,
    }


def _span(span: Range) -> list[float | bool]:
    return [span.lo, span.hi, span.integral]


def kept(folder: Path) -> Collection:
    """Read a collection that `keep` wrote. Raises StoreError when it is damaged."""
    try:
        data = json.loads((folder / INDEX).read_text("utf-8"))
        if data["format"] != _FORMAT:
            raise InputError(f"{folder} holds slices of another version of this tool; choose another --out")
        seeds = tuple(_seed(row, folder) for row in data["slices"])
        inputs = tuple(FittingInput(name, tuple(shape), Range(*span)) for name, shape, *span in data.get("inputs", ()))
        return Collection(seeds, data["models"], tuple(data["skipped"]), tuple(data["notes"]), inputs)
    except (OSError, ValueError, KeyError, TypeError, ModelError) as error:
        raise StoreError(f"the slices in {folder} are damaged ({type(error).__name__}: {error})") from None


def _seed(row: dict[str, Any], folder: Path) -> Seed:
    model = load(folder / row["file"])
    types = {info.name: info.type for info in model.graph.inputs}
    ranges = {name: Range(lo, hi, integral) for name, (lo, hi, integral) in row["ranges"].items()}
    pinned = {name: _pinned(types[name], elements) for name, elements in row["pinned"].items()}
    told = row.get("origin")
    origin = None if told is None else SeedOrigin(told["model"], tuple(told["nodes"]), told["package"])
    return Seed(row["source"], model.graph, model.opset, ranges, pinned, origin, row.get("corpus", False))


def _pinned(kind: object, elements: Sequence[int]) -> Tensor:
    assert isinstance(kind, TensorType)
    shape = tuple(int(size) for size in kind.shape or () if isinstance(size, int))
    return Tensor(kind.dtype, np.asarray(elements, DTYPES[kind.dtype].storage).reshape(shape))
