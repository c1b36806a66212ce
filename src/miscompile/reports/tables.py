"""Tables on a terminal: their common form, support tables, and the difference between two of them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from miscompile.producers.slices.table import SupportTable

_GOOD = ("pass", "skip")
_STYLES = {"pass": "green", "unsupported": "dim", "skip": "dim", "rejected": "yellow"}


def plain_table(*texts: str, numbers: Sequence[str] = (), title: str | None = None) -> Table:
    """Return an empty table without a box: columns of `texts`, which fold, then columns of `numbers`, to the right."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in texts:
        table.add_column(name, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right")
    return table


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
    return Group(Text(f"{named}: {len(rows)} cases differ", style="bold"), shown)
