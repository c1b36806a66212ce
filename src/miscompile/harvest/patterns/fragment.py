"""Conversion of a small program and its inputs to a seed, the concrete representation of a pattern."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from miscompile.base.dtypes import PLAIN
from miscompile.base.errors import ModelError
from miscompile.core.case import Case
from miscompile.core.outcome import Values
from miscompile.core.tensor import Tensor
from miscompile.graph.bodies import is_static, typing_of
from miscompile.graph.model import Graph, TensorType, ValueInfo
from miscompile.graph.randomness import plain
from miscompile.ops.seed import Seed
from miscompile.ops.values import Range
from miscompile.producers.slices.binding import normalised
from miscompile.triage.reduce.draft import Draft, take_apart
from miscompile.triage.reduce.leaves import structural

MOST_BYTES = 64 << 10
"""The most bytes of a pattern's constants; a program with more is a model, not a pattern."""


def seed_of(case: Case, outcome: Values, source: str) -> Seed | None:
    """Return the program of `case` as a seed; `outcome` is the result of its run, which contains the sizes of
    outputs.

    Inputs become holes, with the ranges of their fed values; inputs that determine shapes are fixed. Returns None
    for programs that a seed cannot represent: functions, foreign or random operators, sparse constants, inputs,
    outputs or constants of other than plain dense types, more than 64 KiB of constants.
    """
    try:
        draft = take_apart(case)
        model = normalised(draft.model)
        types = typing_of(model).types
    except ModelError:
        return None
    graph = model.graph
    results = {port.name: value for port, value in zip(case.program.outputs, outcome.results[0], strict=True)}
    constants = graph.initializers
    fed = [info.name for info in graph.inputs if info.name not in constants]
    if any(value is None for value in results.values()) or graph.sparse_initializers:
        return None
    tensors = [*constants.values(), *(draft.feeds[0][name] for name in fed), *filter(None, results.values())]
    if any(value.dtype not in PLAIN for value in tensors) or not all(map(plain, graph.nodes)):
        return None
    if sum(value.array.nbytes for value in constants.values()) > MOST_BYTES:
        return None
    made = {name for node in graph.nodes for name in node.outputs if name} - results.keys()
    known = {name: kind for name in sorted(made) if isinstance(kind := types.get(name), TensorType) and is_static(kind)}
    whole = Graph(
        "pattern",
        tuple(ValueInfo(name, _type(draft.feeds[0][name])) for name in fed),
        tuple(ValueInfo(name, _type(value)) for name, value in results.items() if value is not None),
        tuple(replace(node, domain="", name="") for node in graph.nodes),
        constants,
        types=known,
    )
    return _bounded(source, whole, model.opset, draft)


def _bounded(source: str, graph: Graph, opset: int, draft: Draft) -> Seed:
    """Return the seed with the ranges and fixed values of its inputs, taken from the feeds."""
    fixed = structural(draft)
    feeds = {info.name: [feed[info.name] for feed in draft.feeds] for info in graph.inputs}
    pinned = {name: values[0] for name, values in feeds.items() if name in fixed}
    spans = {name: range_of(values) for name, values in feeds.items() if name not in pinned}
    return Seed(source, graph, opset, {name: span for name, span in spans.items() if span is not None}, pinned)


def range_of(values: Sequence[Tensor]) -> Range | None:
    """Return the closed range of all elements; None when the array is empty, or not all elements are finite numbers."""
    if values[0].dtype == "bool":
        return Range(0, 1, integral=True)
    flat = np.concatenate([value.numbers().ravel() for value in values])
    if not flat.size or flat.dtype.kind not in "fiu" or not np.isfinite(flat.astype(np.float64)).all():
        return None
    lo, hi = (int(end) if flat.dtype.kind in "iu" else float(end) for end in (flat.min(), flat.max()))
    return Range(lo, hi, integral=bool((flat == np.floor(flat)).all()))


def _type(value: Tensor) -> TensorType:
    return TensorType(value.dtype, value.shape)
