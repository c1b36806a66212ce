"""The table of checks, for people."""

from rich.console import Group
from rich.table import Table
from rich.text import Text

from evaluation.oracles.campaigns import OracleFigures

_HEADINGS = ("tests", "tests/s", "confirmed", "no other check", "unconfirmed", "false", "not read")


def oracles_view(figures: OracleFigures) -> Group:
    """Return the table, and the classes that one check alone finds."""
    table = Table(title=f"campaigns of {figures.settings.seconds:.0f} s, seed {figures.settings.seed}")
    table.add_column("target")
    table.add_column("check")
    for heading in _HEADINGS:
        table.add_column(heading, justify="right")
    lines = []
    for one in figures.campaigns:
        alone = figures.alone(one)
        counts = (len(one.confirmed), len(alone), len(one.unconfirmed), one.false, one.unread)
        rate = one.tests / one.seconds if one.seconds else 0.0
        table.add_row(one.target, one.check, f"{one.tests:,}", f"{rate:.1f}", *map(str, counts))
        lines += [Text(f"{one.check} alone: {signature}") for signature in sorted(alone)]
    return Group(table, *lines)
