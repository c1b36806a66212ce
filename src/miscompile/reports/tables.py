"""Tables on a terminal: their common form, support tables, and the difference between two of them."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from miscompile.base.wording import counted
from miscompile.producers.slices.table import SupportTable

_GOOD = ("pass", "skip")
_STYLES = {"pass": "green", "unsupported": "dim", "skip": "dim", "rejected": "yellow"}


_GAP = 2
"""Spaces between two columns."""

_FEWEST = 12
"""Letters of a column that may be cut, below which it is not squeezed."""


class PlainTable:
    """A table without a box that breaks no word, because rich's own tables cut names and counts at 80 columns.

    A column gets at least the width of its longest word. Where that is too much for the terminal, the columns with the
    longest words are left out of the grid, and their cells stand below each row. Columns are `texts`, which wrap, then
    `numbers`, to the right; the texts named in `cut` end with an ellipsis where they do not fit.
    """

    def __init__(
        self, texts: Sequence[str], numbers: Sequence[str] = (), *, title: str = "", cut: Collection[str] = ()
    ) -> None:
        self._names, self._texts = (*texts, *numbers), len(texts)
        self._title, self._cut = title, frozenset(cut)
        self._rows: list[tuple[Text, ...]] = []

    def add_row(self, *cells: str | Text) -> None:
        """Add a row of one cell for each column. Raises ValueError for another number of cells."""
        if len(cells) != len(self._names):
            raise ValueError(f"a row of {len(cells)} cells in a table of {len(self._names)} columns")
        self._rows.append(tuple(cell if isinstance(cell, Text) else Text(cell) for cell in cells))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the table for a terminal of `options.max_width` columns."""
        if self._title:
            yield Text(self._title, style="bold")
        widths = self._widths(options.max_width)
        below = [place for place in range(len(self._names)) if place not in widths]
        if not below:
            yield self._grid(widths, self._rows)
            return
        yield self._grid(widths, ())
        for row in self._rows:
            yield self._grid(widths, [row], head=False)
            yield from (Padding(line, (0, 0, 0, _GAP)) for line in self._lines(row, below))

    def _widths(self, most: int) -> dict[int, int]:
        """Return the widths of the columns that fit beside each other, by their places; the first always does."""
        columns = [[Text(name), *(row[place] for row in self._rows)] for place, name in enumerate(self._names)]
        natural = [max(_longest(cell.plain.splitlines()) for cell in cells) for cells in columns]
        least = [
            min(full, _FEWEST) if name in self._cut else max(_longest(cell.plain.split()) for cell in cells)
            for name, full, cells in zip(self._names, natural, columns, strict=True)
        ]
        beside = list(range(len(columns)))
        while len(beside) > 1 and sum(least[place] + _GAP for place in beside) - _GAP > most:
            beside.remove(max(beside[1:], key=least.__getitem__))
        widths = {place: least[place] for place in beside}
        spare = most - sum(widths.values()) - _GAP * (len(beside) - 1)
        wishes = {place: natural[place] - least[place] for place in beside}
        for done, place in enumerate(sorted(beside, key=wishes.__getitem__)):  # the small wishes first
            given = min(wishes[place], max(0, spare) // (len(beside) - done))
            widths[place], spare = widths[place] + given, spare - given
        return widths

    def _grid(self, widths: Mapping[int, int], rows: Iterable[tuple[Text, ...]], *, head: bool = True) -> Table:
        """Return the columns in `widths` of some rows."""
        grid = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold", show_header=head)
        for place, width in widths.items():
            name, cut = self._names[place], self._names[place] in self._cut
            side: Literal["left", "right"] = "left" if place < self._texts else "right"
            grid.add_column(name, width=width, justify=side, no_wrap=cut, overflow="ellipsis" if cut else "fold")
        for row in rows:
            grid.add_row(*(row[place] for place in widths))
        return grid

    def _lines(self, row: Sequence[Text], below: Sequence[int]) -> Iterator[Text]:
        """Yield a line for each text that stands below its row, and one for all such numbers."""
        told = [(place, row[place]) for place in below if row[place].plain]
        for place, cell in told:
            if place < self._texts:
                yield Text(f"{self._names[place]}: ", style="dim") + cell
        numbers = Text(", ").join(
            Text(f"{self._names[place]} ", style="dim") + cell for place, cell in told if place >= self._texts
        )
        if numbers.plain:
            yield numbers


def _longest(words: Iterable[str]) -> int:
    return max(map(cell_len, words), default=0)


def plain_table(*texts: str, numbers: Sequence[str] = (), title: str = "", cut: Collection[str] = ()) -> PlainTable:
    """Return an empty table without a box: columns of `texts`, then columns of `numbers`, to the right."""
    return PlainTable(texts, numbers, title=title, cut=cut)


def table_view(table: SupportTable) -> Group:
    """Return the operator x dtype x version matrix: passed of all cases in each cell, and the failures."""
    title = " ".join([table.target, *(f"{name} {version}" for name, version in table.versions.items())])
    head = Text(f"{title}, level {table.level}: ", style="bold")
    head.append(", ".join(f"{count} {status}" for status, count in table.totals.items()), style="not bold")
    shown = plain_table("operator", "version", "passed by dtype", "otherwise")
    for op, versions in table.matrix.items():
        for version, dtypes in versions.items():
            cells = Text("  ").join(_cell(dtype, statuses) for dtype, statuses in dtypes.items())
            rest: Counter[str] = Counter()
            for statuses in dtypes.values():
                rest.update({status: count for status, count in statuses.items() if status != "pass"})
            shown.add_row(op, version, cells, Text(", ".join(f"{n} {s}" for s, n in rest.items()), style=_style(rest)))
    return Group(head, shown)


def _cell(dtype: str, statuses: Mapping[str, int]) -> Text:
    passed, total = statuses.get("pass", 0), sum(statuses.values())
    return Text(f"{dtype or '-'} {passed}/{total}", style="green" if passed == total else _style(statuses))


def _style(statuses: Mapping[str, int]) -> str:
    worst = next((status for status in statuses if status not in _STYLES), "")
    return "red" if worst else "dim" if statuses.keys() <= {"unsupported", "skip"} else "yellow"


def difference_view(before: SupportTable, after: SupportTable, rows: Sequence[Mapping[str, Any]]) -> Group:
    """Return a table of the cases that changed."""
    named = " -> ".join(
        " ".join([table.target, *(f"{name} {version}" for name, version in table.versions.items())])
        for table in (before, after)
    )
    shown = plain_table("operator", "case", "before", "after", "message")
    for row in rows:
        style = "green" if row["after"] in _GOOD else "red" if row["before"] in _GOOD else ""
        message = "" if row["after"] in _GOOD else str(row.get("message", ""))[:80]
        shown.add_row(row["op"], row["name"], row["before"] or "-", Text(row["after"] or "-", style=style), message)
    return Group(Text(f"{named}: {counted(len(rows), 'difference')}", style="bold"), shown)
