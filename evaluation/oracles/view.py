"""The table of checks or techniques, for people."""

from rich.console import Group
from rich.table import Table
from rich.text import Text

from evaluation.oracles.campaigns import OracleFigures

_HEADINGS = ("tests", "tests/s", "confirmed", "first", "no other", "unconfirmed", "false", "not read")


def oracles_view(figures: OracleFigures) -> Group:
    """Return the table, and the classes that one check alone finds."""
    table = Table(title=f"campaigns of {figures.settings.seconds:.0f} s, seed {figures.settings.seed}")
    table.add_column("target")
    table.add_column("technique" if figures.settings.techniques else "check")
    for heading in _HEADINGS:
        table.add_column(heading, justify="right")
    lines = []
    for one in figures.campaigns:
        alone = figures.alone(one)
        counts = (len(one.confirmed), len(figures.first(one)), len(alone), len(one.unconfirmed), one.false, one.unread)
        rate = one.tests / one.seconds if one.seconds else 0.0
        table.add_row(one.target, one.name, f"{one.tests:,}", f"{rate:.1f}", *map(str, counts))
        lines += [Text(f"{one.name} alone: {signature}") for signature in sorted(alone)]
    return Group(table, *lines)
