"""What equality saturation costs for a graph, and whether all that it finds is true. Run as a script.

The table has CPU milliseconds for each part, beside those that POLYJUICE reports for its own rewriting and extraction
(Table 5, another machine). `--verify N` instead evaluates every term of the e-graphs of N generated graphs, and of
graphs planted for rules that fire rarely, and prints how often each rule fired.
"""

import argparse
import gc
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress

from miscompile.base.errors import RejectedDraft
from miscompile.base.rng import stream
from miscompile.execution.zygote import RARELY
from miscompile.graph.model import Model
from miscompile.graph.read import read
from miscompile.ops.support import Support
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict
from miscompile.transforms.egraph.choice import layered
from miscompile.transforms.egraph.form import Saturated, least_of
from miscompile.transforms.egraph.layers import space_of
from miscompile.transforms.egraph.plant import plant
from miscompile.transforms.egraph.program import program_of
from miscompile.transforms.egraph.restore import layout, restore
from miscompile.transforms.egraph.saturation import SaturationLimits, RuleTally, chosen, saturate
from miscompile.transforms.egraph.verify import Verified, table, verify
from miscompile.transforms.rules.library import library

SIZES = (5, 10, 15)
PAPER = {5: (0.33, 1.16), 10: (0.33, 1.63), 15: (0.35, 1.64)}
"""Milliseconds of expression rewriting and of graph extraction in Table 5 of POLYJUICE, for TVM."""

PARTS = ("read", "saturate", "search", "least", "most")
"""Reading a model into an e-graph, saturation, what both extractions share, and each extraction with its model."""
REWRITING = PARTS[1:]
"""What POLYJUICE counts: rewriting and both extractions, which here include writing both models."""
SHOWN = (*PARTS, "total", "p95", "rewriting")

_WARM = 30
_ENOUGH = 20
"""Effective uses after which a rule needs no planted graphs."""
_MOST_PLANTED = 200


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
        _ = each.find, each.admit, each.build
    return 1e3 * (time.process_time() - start)


def check(count: int, seed: int, limits: SaturationLimits) -> tuple[Verified, RuleTally, list[str]]:
    """Verify the e-graphs of `count` generated graphs, then plant for the rules that fired too rarely.

    Returns what was verified, how often rules fired, and the rules that never got to fire often enough.
    """
    found, total = Verified(), RuleTally()
    for number, model in enumerate(models(8, count, seed)):
        _verified(model, number, limits, "", found, total)
    rare = []
    for rule in library():
        for number in range(_MOST_PLANTED):
            if total.unions[rule.name] >= _ENOUGH:
                break
            try:
                model = plant(rule, stream(seed, "plant", rule.name, number))
            except RejectedDraft:
                continue
            _verified(model, number, SaturationLimits(1, limits.nodes, 4), rule.name, found, total)
        if total.unions[rule.name] < _ENOUGH:
            rare.append(rule.name)
    return found, total, rare


def _verified(model: Model, seed: int, limits: SaturationLimits, groups: str, found: Verified, total: RuleTally) -> None:
    program = program_of(model)
    tally = saturate(program, chosen(groups), limits, seed)
    verify(program, seed, found)
    for mine, all_of_it in (
        (tally.matches, total.matches),
        (tally.unions, total.unions),
        (tally.refused, total.refused),
        (tally.unsupported, total.unsupported),
    ):
        all_of_it.update(mine)


def report(found: Verified, total: RuleTally, rare: list[str]) -> int:
    """Print what the check found; return 1 when something is wrong."""
    names = [rule.name for rule in library()]
    print("   fired  matched  rule")
    print(table(names, total.matches, total.unions))
    print(f"\n{found.checked} terms: {found.exact} exact, {found.close} up to rounding, {len(found.bad)} bad;")
    print(f"{found.unbounded} with infinities or NaN were not held against their class")
    print(f"refused: {dict(total.refused) or 'none'}; without operator in the opset: {total.unsupported.total()}")
    print(f"fired fewer than {_ENOUGH} times: {', '.join(rare) or 'none'}")
    for line in found.bad[:10]:
        print(f"bad: {line}")
    return 1 if found.bad or total.refused else 0


def summary(found: Verified, total: RuleTally, rare: list[str]) -> dict[str, object]:
    """Return the check as JSON values."""
    fired: Mapping[str, int] = Counter({rule.name: total.unions[rule.name] for rule in library()})
    counts = {"exact": found.exact, "close": found.close, "unbounded": found.unbounded, "bad": found.bad}
    return {**counts, "refused": total.refused, "fired": fired, "rare": rare}


def main() -> int:
    """Measure or verify, as the options say."""
    parser = argparse.ArgumentParser(description="CPU milliseconds of equality saturation per graph, or its soundness.")
    parser.add_argument("--graphs", type=int, default=200, help="graphs of each size")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--structural", type=float, default=SaturationLimits().structural, help="structural rules for each value")
    parser.add_argument("--terms", type=int, default=2000, help="limit on the terms of an e-graph")
    parser.add_argument("--groups", default="", help="rules or groups of rules, joined with + (default: all)")
    parser.add_argument("--share", type=float, help="share of the groups for each graph (default: the form's, or 1)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verify", type=int, metavar="GRAPHS", help="check the e-graphs of so many graphs instead")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    whole = options.groups or options.verify is not None
    share = options.share or (1.0 if whole else Saturated().share)
    limits = SaturationLimits(options.rounds, options.terms, options.structural, share)
    if options.verify is not None:
        outcome = check(options.verify, options.seed, limits)
        if options.json:
            print(json.dumps(summary(*outcome)))
            return 1 if outcome[0].bad or outcome[1].refused else 0
        return report(*outcome)
    once = prepare(options.groups)
    rows = {size: measure(size, options.graphs, options.seed, options.layers, limits, options.groups) for size in SIZES}
    if options.json:
        rounded = {size: {key: round(value, 3) for key, value in row.items()} for size, row in rows.items()}
        print(json.dumps({"measured": rounded, "once": round(once, 1), "polyjuice": PAPER}))
        return 0
    print("operators  " + "".join(f"{part:>9}" for part in SHOWN) + "   paper  operators: fewest most")
    for size, row in rows.items():
        parts = "".join(f"{row[part]:9.2f}" for part in SHOWN)
        sizes = f"{row['operators']:9.0f}: {row['fewest']:6.0f} {row['most_operators']:4.0f}"
        print(f"{size:9}  {parts}{sum(PAPER[size]):8.2f}  {sizes}")
    print("CPU milliseconds, medians; the paper's column is rewriting and extraction, on another machine")
    print(f"{once:.0f} ms for loading and compiling all rules, once for a process")
    return 0


if __name__ == "__main__":
    sys.exit(main())
