"""The cost of equality saturation for a graph.

The table has CPU milliseconds for each part, beside those that POLYJUICE reports for its own rewriting and extraction
(Table 5, another machine).
"""

import gc
import statistics
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from miscompile.base.errors import RejectedDraft
from miscompile.base.rng import stream
from miscompile.execution.zygote import RARELY
from miscompile.graph.model import Model
from miscompile.graph.read import read
from miscompile.ops.support import Support
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict
from miscompile.transforms.egraph.choice import layered
from miscompile.transforms.egraph.layers import space_of
from miscompile.transforms.egraph.program import program_of
from miscompile.transforms.egraph.restore import layout, restore
from miscompile.transforms.egraph.saturation import SaturationLimits, chosen, saturate
from miscompile.transforms.egraph.transform import Saturated, least_of

SIZES = (5, 10, 15)
PAPER = {5: (0.33, 1.16), 10: (0.33, 1.63), 15: (0.35, 1.64)}
"""Milliseconds of expression rewriting and of graph extraction in Table 5 of POLYJUICE, for TVM."""

PARTS = ("read", "saturate", "search", "least", "most")
"""Reading a model into an e-graph, saturation, what both extractions share, and each extraction with its model."""
REWRITING = PARTS[1:]
"""The parts that POLYJUICE counts: rewriting and both extractions, which here include writing both models."""
SHOWN = (*PARTS, "total", "p95", "rewriting")

_WARM = 30


def models(nodes: int, count: int, seed: int) -> list[Model]:
    """Return `count` generated graphs of about `nodes` operators."""
    producer = Strict(GeneratorOptions(nodes=nodes, spread=0.0, variants=1), Support(open=True))
    return [read(producer.propose(stream(seed, "egraph", nodes, index)).program.payload) for index in range(count)]


def timed(
    model: Model, seed: int, layers: int, limits: SaturationLimits, groups: str
) -> tuple[dict[str, float], tuple[int, int, int, int]]:
    """Return the milliseconds of each part, and the operators of program, least and most, and the number of terms."""
    marks = [time.process_time()]

    def lap() -> None:
        marks.append(time.process_time())

    program = program_of(model)
    lap()
    saturate(program, chosen(groups), limits, seed)
    lap()
    space = space_of(program)
    lap()
    _, simple_one, fewest = least_of(space)
    restore(program, simple_one, fewest)
    lap()
    complex_one = layered(space, "most", layers, seed)
    found = layout(complex_one)
    restore(program, complex_one, found)
    lap()
    spent = {part: 1e3 * (after - before) for part, before, after in zip(PARTS, marks, marks[1:], strict=False)}
    return spent, (program.operators(), fewest.operators, found.operators, len(program.graph))


def measure(nodes: int, count: int, seed: int, layers: int, limits: SaturationLimits, groups: str) -> dict[str, float]:
    """Return medians of each part, the median and the 95th percentile of all parts, and median sizes."""
    graphs = models(nodes, count + _WARM, seed)
    for number, model in enumerate(graphs[:_WARM]):
        with suppress(RejectedDraft):
            timed(model, number, layers, limits, groups)
    gc.collect()
    gc.freeze()  # the graphs that wait are no part of what a graph costs
    gc.set_threshold(*RARELY)  # as where a campaign does this
    rows = []
    for number, model in enumerate(graphs[_WARM:]):
        with suppress(RejectedDraft):  # a term that the model's opset cannot say
            rows.append(timed(model, number, layers, limits, groups))
    found = {part: statistics.median(spent[part] for spent, _ in rows) for part in PARTS}
    found["rewriting"] = statistics.median(sum(spent[part] for part in REWRITING) for spent, _ in rows)
    totals = sorted(sum(spent.values()) for spent, _ in rows)
    found["total"] = statistics.median(totals)
    found["p95"] = totals[int(0.95 * (len(totals) - 1))]
    for place, name in enumerate(("operators", "fewest", "most_operators", "terms")):
        found[name] = statistics.median(sizes[place] for _, sizes in rows)
    return found


def prepare(groups: str) -> float:
    """Return the milliseconds that a process spends once on rules that it uses sooner or later: loading, compiling."""
    start = time.process_time()
    rules = chosen(groups)
    for each in (*rules.arithmetic, *rules.structural):
        each.compile()
    return 1e3 * (time.process_time() - start)


def figures(
    graphs: int,
    layers: int,
    rounds: int,
    structural: float | None,
    terms: int,
    groups: str,
    share: float | None,
    seed: int,
) -> dict[str, Any]:
    """Return milliseconds by number of operators, those of loading all rules once for a process, and the paper's."""
    share = share or (1.0 if groups else Saturated().share)
    limits = SaturationLimits(rounds, terms, SaturationLimits().structural if structural is None else structural, share)
    once = prepare(groups)
    rows = {size: measure(size, graphs, seed, layers, limits, groups) for size in SIZES}
    rounded = {size: {key: round(value, 3) for key, value in row.items()} for size, row in rows.items()}
    return {"measured": rounded, "once": round(once, 1), "polyjuice": PAPER}


def table(found: Mapping[str, Any]) -> str:
    """Return the figures as lines, beside those of the paper."""
    lines = ["operators  " + "".join(f"{part:>9}" for part in SHOWN) + "   paper  operators: fewest most"]
    for size, row in found["measured"].items():
        parts = "".join(f"{row[part]:9.2f}" for part in SHOWN)
        sizes = f"{row['operators']:9.0f}: {row['fewest']:6.0f} {row['most_operators']:4.0f}"
        lines.append(f"{size:9}  {parts}{sum(PAPER[size]):8.2f}  {sizes}")
    lines.append("CPU milliseconds, medians; the paper's column is rewriting and extraction, on another machine")
    lines.append(f"{found['once']:.0f} ms for loading and compiling all rules, once for a process")
    return "\n".join(lines)
