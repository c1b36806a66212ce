"""The tables of OPERA's prioritisation, for people."""

from collections.abc import Iterator, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from evaluation.hirfuzz.view import plain_table
from evaluation.opera.apfd import SHARES
from evaluation.opera.orders import ORDERS
from evaluation.opera.prioritisation import PAPERS, FrontFigures, OrderFigures


def opera_view(results: OrderFigures) -> Group:
    """Return the tables of what was measured, each with the paper's figures where it has some."""
    return Group(*_tables(results))


def _tables(results: OrderFigures) -> Iterator[Table | Text]:
    fronts = [front for front in results.fronts if front.rankings]
    for front in results.fronts:
        if not front.bugs:
            yield Text(f"{front.name}: no bug in {front.tests} tests, so there is nothing to rank for.")
        elif not front.rankings:
            yield Text(f"{front.name}: none of these orders is known; those by statements need --coverage.")
    if not fronts:
        return
    names = [name for name in ORDERS if any(name in front.rankings for front in fronts)]
    yield _apfd(results, fronts, names)
    yield Text(
        f"Means of {results.settings.repetitions} drawings. opera: scarcity of the operator in the compiler's own "
        "tests times newness of its parameters; operators, parameters: one of the two alone; fast: dissimilarity of "
        "texts; total, additional: statements of the front end, where it is written in Python; first-come: as "
        "harvested. Means are over all front ends above, and empty where an order lacks one.\n"
    )
    yield _rauc(fronts, names)
    yield Text("RAUC-k: the area under the curve of bugs over tests, of the first k tests, relative to the ideal.\n")
    yield _cost(fronts, names)
    yield Text("Seconds in the compiler until the last bug was found, ranking (in brackets, CPU time) among them.")


def _apfd(results: OrderFigures, fronts: Sequence[FrontFigures], names: Sequence[str]) -> Table:
    table = plain_table("APFD", "front end", "tests", "bugs", *names)
    for front in fronts:
        cells = [f"{front.rankings[name].apfd.mean:.3f}" if name in front.rankings else "" for name in names]
        table.add_row(front.name, f"{front.tests:,}", str(front.bugs), *cells)
        if papers := front.papers():
            table.add_row("  paper", "", "", *(f"{papers[name]:.3f}" if name in papers else "" for name in names))
    means = results.means()
    table.add_row("mean", "", "", *(f"{means[name]:.3f}" if name in means else "" for name in names))
    table.add_row("  paper", "", "", *(f"{PAPERS[name]:.3f}" if name in PAPERS else "" for name in names))
    return table


def _rauc(fronts: Sequence[FrontFigures], names: Sequence[str]) -> Table:
    table = plain_table("RAUC-k", "front end", "k", *names)
    for front in fronts:
        for share in SHARES:
            cells = [f"{front.rankings[name].rauc[share].mean:.3f}" if name in front.rankings else "" for name in names]
            table.add_row(front.name, f"{share:.0%}", *cells)
    return table


def _cost(fronts: Sequence[FrontFigures], names: Sequence[str]) -> Table:
    table = plain_table("Seconds to all bugs", "front end", *names)
    for front in fronts:
        cells = []
        for name in names:
            ranking = front.rankings.get(name)
            cells.append(f"{ranking.until.mean:,.0f} ({ranking.seconds.mean:.1f})" if ranking else "")
        table.add_row(front.name, *cells)
    return table
