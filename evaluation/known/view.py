"""Which public bugs campaigns found, for people."""

from rich.console import Group
from rich.text import Text

from evaluation.known.campaigns import KnownFigures
from miscompile.reports.tables import plain_table


def known_view(figures: KnownFigures) -> Group:
    """Return a line for each bug with the findings that may be it, and how many bugs have any."""
    table = plain_table("bug", "release", "class", "part", "candidates", numbers=("tests", "confirmed", "mended"))
    for one in figures.outcomes:
        bug = one.bug
        ids = ", ".join(identifier for identifier, _ in one.candidates) or "-"
        counts = (f"{one.tests:,}", str(one.confirmed), str(one.mended))
        table.add_row(bug.name, bug.has_it, bug.kind, bug.part, ids, *counts)
    seen = sum(bool(one.candidates) for one in figures.outcomes)
    return Group(table, Text(f"{seen} of {len(figures.outcomes)} bugs have candidates"))
