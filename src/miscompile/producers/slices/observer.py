"""The observer's child process: `python -m miscompile.producers.slices.observer FOLDER BYTES`.

Runs FOLDER/model.onnx, node by node, on the feeds in FOLDER/feeds.npz with onnx's reference evaluator, in BYTES of
memory, and prints one JSON line for every input, and for every value as soon as it is known: `feed` (its number),
`name`, `dtype`, `shape`, `lo` and `hi` (null where some element is not finite), `integral`, and the `elements` of small
integer tensors. A node that the evaluator cannot run gives no line, and neither do nodes that depend on it.
"""

import json
import math
import os
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import onnx

from miscompile.base.child import limit_memory
from miscompile.base.dtypes import DTYPES
from miscompile.core.tensor import Array, numpy_name
from miscompile.graph.edges import reads
from miscompile.graph.emit import model_proto
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.read import load
from miscompile.graph.structural import STRUCTURAL_SIZE
from miscompile.ops.definitions.evaluator import evaluator


def observe(model: Model, feed: Mapping[str, Array]) -> Iterator[dict[str, Any]]:
    """Yield an observation of every node result of `model`; `feed` holds the inputs by name."""
    waiting = Counter(name for node in model.graph.nodes for name in reads(node))
    known = {name: _native(value.dtype, value.array) for name, value in model.graph.initializers.items()}
    known.update(feed)
    for node in model.graph.nodes:
        used = dict.fromkeys(reads(node))
        if all(name in known for name in used):
            for name, value in _results(model, node, {name: known[name] for name in used}).items():
                known[name] = value
                yield {"name": name, **describe(value)}
        waiting.subtract(reads(node))
        for name in used:
            if not waiting[name]:
                known.pop(name, None)


def _results(model: Model, node: Node, operands: Mapping[str, Any]) -> dict[str, Array]:
    """Return the dense tensors that `node` makes; none when the evaluator cannot run it."""
    inputs = tuple(ValueInfo(name, TensorType(numpy_name(value.dtype), None)) for name, value in operands.items())
    names = [name for name in node.outputs if name]
    graph = Graph("node", inputs, tuple(ValueInfo(name, None) for name in names), (node,))
    try:
        found = evaluator(model_proto(replace(model, graph=graph))).run(names, dict(operands))
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it raises means that this node cannot be observed
        print(f"{node.op}: {type(error).__name__}: {error}", file=sys.stderr)
        return {}
    made = zip(names, found, strict=True)
    return {name: np.asarray(value) for name, value in made if isinstance(value, np.ndarray | np.generic)}


def describe(value: Array) -> dict[str, Any]:
    """Return type and bounds of `value` as JSON values."""
    dtype = numpy_name(value.dtype)
    seen: dict[str, Any] = {"dtype": dtype, "shape": list(value.shape), "lo": None, "hi": None, "integral": False}
    info = DTYPES.get(dtype)
    if info is None or info.kind in ("string", "complex") or not value.size:
        return seen
    numbers = value.astype(np.float64) if info.kind == "float" else value
    lo, hi = float(numbers.min()), float(numbers.max())
    if math.isfinite(lo) and math.isfinite(hi):
        whole = info.kind != "float" or bool((np.floor(numbers) == numbers).all())
        seen.update({"lo": lo, "hi": hi, "integral": whole})
    if info.kind in ("int", "uint") and value.size <= STRUCTURAL_SIZE:
        seen["elements"] = value.ravel().tolist()
    return seen


def _native(dtype: str, array: Array) -> Array:
    """Return the array in the evaluator's types: float types that numpy lacks as ml_dtypes."""
    wanted = onnx.helper.tensor_dtype_to_np_dtype(DTYPES[dtype].code)
    return array if dtype == "string" or array.dtype == wanted else array.view(wanted)


def _run(folder: Path, out: TextIO) -> None:
    model = load(folder / "model.onnx")
    names = json.loads((folder / "names.json").read_text("utf-8"))
    with np.load(folder / "feeds.npz", allow_pickle=False) as arrays:
        feeds = [
            {name: _native(dtype, arrays[f"{row}_{place}"]) for place, (name, dtype) in enumerate(names["inputs"])}
            for row in range(names["feeds"])
        ]
    for row, feed in enumerate(feeds):
        inputs = ({"name": name, **describe(value)} for name, value in feed.items())
        for seen in chain(inputs, observe(model, feed)):
            out.write(json.dumps({"feed": row, **seen}) + "\n")
            out.flush()


def main() -> int:
    """Print the observations to standard output, after redirecting the evaluator's own output."""
    folder, memory = Path(sys.argv[1]), int(sys.argv[2])
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    limit_memory(memory)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    try:
        _run(folder, out)
    except MemoryError:
        return 1  # the lines printed so far are valid
    return 0


if __name__ == "__main__":
    sys.exit(main())
