"""The tables of the bench of OATest, for people."""

from collections.abc import Iterator, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from miscompile.bench.ablations import PAPERS, ArmSeries, compared
from miscompile.bench.oatest import Results
from miscompile.bench.splicing import PAPERS_DIRECT, PAPERS_GENERATION, PAPERS_TRIGGER, Splicing
from miscompile.bench.triggers import Trigger
from miscompile.bench.view import plain_table

_ARMS = {
    "own": "as the pass works",
    "block": "always a block",
    "subgraph": "always a subgraph",
    "whole": "the whole program",
    "random": "random fragments",
    "tests": "seeds: whole programs",
    "alone": "seeds: none",
}


def oatest_view(results: Results) -> Group:
    """Return the tables of what was measured, each with the paper's figures."""
    return Group(*_tables(results))


def _tables(results: Results) -> Iterator[Table | Text]:
    if results.splicing:
        yield _splicing(results.splicing)
        yield Text(
            "valid: passes onnx's full check, and the target builds and runs it unoptimised; refused: a lawful no; in, "
            "out, inside: an operator of the pattern reads an inner result of the seed, an operator of the seed depends "
            "on the pattern, both, followed on the finished graph; fixed: what it reads depends on no input, and is no "
            f"edge; disputed: the recipe says otherwise. The paper: {_percent(PAPERS_DIRECT)} valid without repair; "
            "the splicing of its released code for ONNX Runtime reaches the inside of no seed.\n"
        )
        yield _firing(results.splicing)
        yield Text(
            "fires: an intended pass is seen to change the program, rules one by one; chance: the same for the passes "
            f"that another program is for. The paper: {_percent(PAPERS_TRIGGER['tvm'])} (TVM), "
            f"{_percent(PAPERS_TRIGGER['onnxruntime'])} (ONNX Runtime), by coverage of the pass's file. generation: "
            "share of the CPU time of generation and compiler together; the paper: less than "
            f"{_percent(PAPERS_GENERATION)} of the time.\n"
        )
    for target, library in results.libraries.items():
        data = library.as_json()
        sizes = ", ".join(f"{way} {size:.1f}" for way, size in data["operators"].items())
        kinds = ", ".join(f"{count} {kind}s" for kind, count in data["granularity"].items())
        yield Text(
            f"Pairs for {target}: {data['pairs']} of {len(data['passes'])} passes ({kinds}), from {data['programs']} "
            f"programs; operators: {sizes}\n"
        )
    for target in dict.fromkeys(series.target for series in results.ablation):
        yield _ablation(target, results.of(target))
    if results.ablation:
        yield Text(
            "bugs: different signatures after triage; left out: unstable, unconfirmed or untriaged; passes, sets, "
            "pairs: that were seen to change a program, alone, as a whole, and two of them in one; in brackets: over "
            "the first row; paper: its bugs in 12 hours (TVM + ONNX Runtime), and both over its own setting.\n"
        )
    yield Text(f"seed {results.options.seed}, {results.seconds:.0f} s")


def _splicing(found: Sequence[Splicing]) -> Table:
    table = plain_table(
        "Splicing", "target", "syntheses", "valid", "checked", "refused", "failed", "in", "out", "inside", "fixed",
        "disputed",
        "strategies", "bridges", "patterns", "called",
    )  # fmt: skip
    for one in found:
        failed = one.syntheses - one.refused - one.endings.get("values", 0)
        shares = [_percent(one.share(count)) for count in (one.into, one.out, one.inside, one.fixed)]
        strategies = ", ".join(f"{name} {_percent(one.share(count))}" for name, count in one.strategies.items())
        table.add_row(
            one.target, f"{one.syntheses:,}", _percent(one.share(one.valid)), _percent(one.share(one.checked)),
            str(one.refused), str(failed), *shares, str(one.disputed), strategies, f"{one.bridges.mean:.2f}",
            f"{one.orders.mean:.2f}", str(one.called),
        )  # fmt: skip
    return table


def _firing(found: Sequence[Splicing]) -> Table:
    table = plain_table(
        "Trigger rate and time", "target", "watched", "fires", "chance", "mean of passes", "passes", "generation",
        "ms each", "seconds",
    )  # fmt: skip
    for one in found:
        trigger = one.trigger
        cells = ["", "", "", "", ""]
        if trigger is not None:
            shares = [_percent(share) for share in (trigger.rate, trigger.by_chance, trigger.mean_of_passes)]
            cells = [str(trigger.built), *shares, str(len(trigger.passes))]
        each = 1000 * one.generating / one.syntheses
        table.add_row(one.target, *cells, _percent(one.generation), f"{each:.1f}", f"{one.seconds:.0f}")
    return table


def _ablation(target: str, found: Sequence[ArmSeries]) -> Table:
    table = plain_table(
        f"Ablation on {target}", "patterns", "number", "operators", "tests", "valid", "bugs", "left out", "fires",
        "passes", "sets", "pairs", "paper", "seconds",
    )  # fmt: skip
    ratios = compared(found)
    for one in found:
        settled, over = one.settled, ratios.get(one.arm, {})
        left_out = settled.unstable + len(settled.unconfirmed) + settled.untriaged
        paper = PAPERS.get(one.arm)
        table.add_row(
            _ARMS.get(one.arm, one.arm), str(one.patterns), f"{one.operators:.1f}", f"{one.tests:,}",
            _percent(one.valid), _over(one.unique.by_signature, over.get("signatures")), str(left_out),
            _fires(one.trigger), _over(one.passes, over.get("passes")), _over(one.sets, over.get("sets")),
            _over(one.pairs, over.get("pairs")),
            "" if paper is None else f"{paper.tvm} + {paper.onnxruntime} ({paper.ratio:.2f})",
            f"{sum(one.seconds):.0f}",
        )  # fmt: skip
    return table


def _fires(trigger: Trigger | None) -> str:
    return "" if trigger is None else _percent(trigger.rate)


def _over(count: int, ratio: float | None) -> str:
    return str(count) if ratio is None else f"{count} ({ratio:.2f})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
