"""The tables of OATest, for people."""

from collections.abc import Iterator, Sequence
from typing import get_args

from rich.console import Group
from rich.table import Table
from rich.text import Text

from evaluation.hirfuzz.view import plain_table
from evaluation.oatest.ablations import PAPERS, ArmSeries, compared
from evaluation.oatest.experiments import OatestFigures
from evaluation.oatest.libraries import Libraries
from evaluation.oatest.splicing import PAPERS_DIRECT, PAPERS_GENERATION, PAPERS_TRIGGER, Splicing
from miscompile.producers.synthesis.places import PlacementStrategy

_ARMS = {
    "own": "own granularity",
    "block": "always blocks",
    "subgraph": "always subgraphs",
    "whole": "whole programs",
    "random": "random fragments",
    "tests": "programs as seeds",
    "alone": "no seeds",
}


_MOST_WORDS = 12
"""Rows for what a target says; the file of figures has all."""

_STRATEGIES = get_args(PlacementStrategy)


def oatest_view(results: OatestFigures) -> Group:
    """Return the tables of what was measured, each with the paper's figures."""
    return Group(*_tables(results))


def _tables(results: OatestFigures) -> Iterator[Table | Text]:
    if results.splicing:
        yield _validity(results.splicing)
        yield Text(
            "valid: passes onnx's full check, and the target builds and runs it unoptimised; refused: a lawful no. The "
            f"paper: {_percent(PAPERS_DIRECT)} valid when edges are not repaired.\n"
        )
        yield from _said(results.splicing)
        yield _joints(results.splicing)
        yield Text(
            "in, out, inside: an operator of the pattern reads an inner result of the seed, an operator of the seed "
            "depends on the pattern, both, followed on the finished graph; fixed: what it reads depends on no input, "
            "and is no edge; disputed: the recipe says otherwise. The splicing of the paper's released code for ONNX "
            "Runtime reaches the inside of no seed.\n"
        )
        yield _ways(results.splicing)
        yield Text("bridges, patterns: mean number in a program; called: patterns that stand as functions.\n")
        yield _firing(results.splicing)
        yield Text(
            "fires: an intended pass is seen to change the program, rules one by one; chance: the same for the passes "
            f"that another program is for. The paper: {_percent(PAPERS_TRIGGER['tvm'])} (TVM), "
            f"{_percent(PAPERS_TRIGGER['onnxruntime'])} (ONNX Runtime), by coverage of the pass's file. generation: "
            "share of the CPU time of generation and compiler together; the paper: less than "
            f"{_percent(PAPERS_GENERATION)} of the time.\n"
        )
    for target, library in results.libraries.items():
        yield _library(target, library)
    for target in dict.fromkeys(series.target for series in results.ablation):
        yield _bugs(target, results.of(target))
        yield _passes(target, results.of(target))
    if results.ablation:
        yield Text(
            "bugs: different signatures after triage; left out: unstable, unconfirmed or untriaged; passes, sets, "
            "pairs: that were seen to change a program, alone, as a whole, and two of them in one; in brackets: over "
            "the first row; paper: its bugs in 12 hours (TVM + ONNX Runtime), and both over its own setting.\n"
        )
    yield Text(f"seed {results.settings.seed}, {results.seconds:.0f} s")


def _validity(found: Sequence[Splicing]) -> Table:
    table = plain_table("Synthesised programs", "target", "syntheses", "valid", "checked", "refused", "failed")
    for one in found:
        failed = one.syntheses - one.refused - one.endings.get("values", 0)
        shares = [_percent(one.share(count)) for count in (one.valid, one.checked)]
        table.add_row(one.target, f"{one.syntheses:,}", *shares, str(one.refused), str(failed))
    return table


def _said(found: Sequence[Splicing]) -> Iterator[Table | Text]:
    if any(one.said for one in found):
        table = plain_table("What targets say of programs without values", "target", "programs", "words")
        for one in found:
            for words, count in [*one.said.items()][:_MOST_WORDS]:
                table.add_row(one.target, str(count), words)
        table.columns[-1].justify = "left"
        yield table
        yield Text("")


def _joints(found: Sequence[Splicing]) -> Table:
    table = plain_table("Patterns in seeds", "target", "in", "out", "inside", "fixed", "disputed")
    for one in found:
        shares = [_percent(one.share(count)) for count in (one.into, one.out, one.inside, one.fixed)]
        table.add_row(one.target, *shares, str(one.disputed))
    return table


def _ways(found: Sequence[Splicing]) -> Table:
    table = plain_table("How patterns came in", "target", *_STRATEGIES, "bridges", "patterns", "called")
    for one in found:
        ways = [_percent(one.share(one.strategies.get(name, 0))) for name in _STRATEGIES]
        table.add_row(one.target, *ways, f"{one.bridges.mean:.2f}", f"{one.orders.mean:.2f}", str(one.called))
    return table


def _firing(found: Sequence[Splicing]) -> Table:
    table = plain_table(
        "Trigger rate and time", "target", "watched", "fires", "chance", "mean of passes", "passes", "generation",
        "ms each",
    )  # fmt: skip
    for one in found:
        trigger, cells = one.trigger, ["", "", "", "", ""]
        if trigger is not None:
            shares = [_percent(share) for share in (trigger.rate, trigger.by_chance, trigger.mean_of_passes)]
            cells = [str(trigger.built), *shares, str(len(trigger.passes))]
        table.add_row(one.target, *cells, _percent(one.generation), f"{1000 * one.generating / one.syntheses:.1f}")
    return table


def _library(target: str, library: Libraries) -> Text:
    data = library.as_json()
    sizes = ", ".join(f"{way} {size:.1f}" for way, size in data["operators"].items())
    kinds = ", ".join(f"{count} {kind}s" for kind, count in data["granularity"].items())
    return Text(
        f"Pairs for {target}: {data['pairs']} of {len(data['passes'])} passes ({kinds}), from {data['programs']} "
        f"programs; operators: {sizes}\n"
    )


def _bugs(target: str, found: Sequence[ArmSeries]) -> Table:
    table = plain_table(f"Bugs of {target}", "setting", "tests", "valid", "bugs", "left out", "paper", "seconds")
    ratios = compared(found)
    for one in found:
        settled, paper = one.settled, PAPERS.get(one.arm)
        left_out = settled.unstable + len(settled.unconfirmed) + settled.untriaged
        bugs = _over(one.unique.by_signature, ratios.get(one.arm, {}).get("signatures"))
        papers = "" if paper is None else f"{paper.tvm} + {paper.onnxruntime} ({paper.ratio:.2f})"
        cells = (f"{one.tests:,}", _percent(one.valid), bugs, str(left_out), papers, f"{sum(one.seconds):.0f}")
        table.add_row(_ARMS[one.arm], *cells)
    return table


def _passes(target: str, found: Sequence[ArmSeries]) -> Table:
    table = plain_table(f"Passes of {target}", "setting", "operators", "fires", "chance", "passes", "sets", "pairs")
    ratios = compared(found)
    for one in found:
        over, trigger = ratios.get(one.arm, {}), one.trigger
        rates = ("", "") if trigger is None else (_percent(trigger.rate), _percent(trigger.by_chance))
        counts = [_over(getattr(one, name), over.get(name)) for name in ("passes", "sets", "pairs")]
        table.add_row(_ARMS[one.arm], f"{one.operators:.1f}", *rates, *counts)
    return table


def _over(count: int, ratio: float | None) -> str:
    return str(count) if ratio is None else f"{count} ({ratio:.2f})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
