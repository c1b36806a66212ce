"""Milliseconds that it takes to make a resistant twin, beside ORTHRUS's Table IV.

The graphs are generated, of 5, 10 and 15 operators. Measured is the transformation alone, from one graph value to the
other, type inference included; reading and emitting a ModelProto are shown beside it. CPU time, median of the graphs.
"""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from miscompile.base.errors import RejectedDraft
from miscompile.base.rng import stream
from miscompile.graph.emit import emit
from miscompile.graph.model import Model
from miscompile.graph.read import read
from miscompile.ops.support import Support
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict
from miscompile.transforms.resist.transform import Resistant, sites

PAPER = {5: (0.32, 0.21), 10: (0.33, 0.23), 15: (0.33, 0.25)}
"""ORTHRUS, Table IV: model transformation in ms, for TVM and for ONNX Runtime, by number of graph nodes."""

FORMS: Mapping[str, Resistant] = {
    "all": Resistant(),
    "fusion": Resistant(classes="fusion"),
    "algebraic": Resistant(classes="algebraic"),
}


@dataclass(frozen=True, slots=True)
class TwinCost:
    """Medians for graphs of one size: barriers in a twin, and ms for the twin, for reading and for emitting."""

    operators: int
    form: str
    graphs: int
    barriers: float
    transform_ms: float
    read_ms: float
    emit_ms: float
    paper_tvm_ms: float
    paper_onnxruntime_ms: float


def drawn(operators: int, count: int) -> list[bytes]:
    """Return `count` generated models of that many operators, as bytes."""
    producer = Strict(GeneratorOptions(nodes=operators, spread=0.0, variants=1), Support(open=True))
    found: list[bytes] = []
    number = 0
    while len(found) < count:
        payload = producer.propose(stream(1, "resist", operators, number)).program.payload
        number += 1
        if operators <= len(read(payload).graph.nodes) <= operators + 2:
            found.append(payload)
    return found


def row(operators: int, name: str, payloads: Sequence[bytes]) -> TwinCost:
    """Measure one form on graphs of one size; graphs without an edge of its classes do not count."""
    form = FORMS[name]
    models = [read(payload) for payload in payloads]
    twins = [
        (payload, model, twin) for payload, model in zip(payloads, models, strict=True) if (twin := _twin(model, form))
    ]
    barriers = statistics.median(len(sites(model, form)) for _, model, _ in twins)
    return TwinCost(
        operators,
        name,
        len(twins),
        barriers,
        statistics.median(_ms(form.apply, model) for _, model, _ in twins),
        statistics.median(_ms(read, payload) for payload, _, _ in twins),
        statistics.median(_ms(emit, twin) for _, _, twin in twins),
        *PAPER[operators],
    )


def _twin(model: Model, form: Resistant) -> Model | None:
    try:
        return form.apply(model)
    except RejectedDraft:
        return None


def _ms(work: Callable[[Any], object], argument: object, times: int = 5) -> float:
    """Return the CPU milliseconds of a call, at best of `times`: the others have met someone else's cache lines."""
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        work(argument)
        best = min(best, time.process_time() - start)
    return best * 1000


def measure(count: int) -> list[dict[str, Any]]:
    """Return a row for each size and form, over `count` graphs of each size."""
    graphs = {operators: drawn(operators, count) for operators in PAPER}
    return [asdict(row(operators, name, payloads)) for operators, payloads in graphs.items() for name in FORMS]


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows as lines."""
    lines = ["operators  classes    barriers  twin ms  read ms  emit ms   paper: TVM, ONNX Runtime"]
    lines += [
        f"{one['operators']:9}  {one['form']:9}  {one['barriers']:8.0f}  {one['transform_ms']:7.2f}"
        f"  {one['read_ms']:7.2f}  {one['emit_ms']:7.2f}   {one['paper_tvm_ms']:.2f}, {one['paper_onnxruntime_ms']:.2f}"
        for one in rows
    ]
    return "\n".join(lines)
