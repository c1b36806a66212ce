"""Which public bugs campaigns found, for people."""

from rich.console import Group
from rich.text import Text

from evaluation.known.campaigns import KnownFigures
from evaluation.known.migrated import MigratedBug, MigrationFigures
from miscompile.reports.tables import plain_table


def known_view(figures: KnownFigures) -> Group:
    """Return a line for each bug with the findings that may be it, and how many bugs have any."""
    table = plain_table("bug", "release", "class", "part", "candidates", numbers=("tests", "repeated", "mended"))
    for one in figures.outcomes:
        bug = one.bug
        ids = "not run" if one.not_run else ", ".join(identifier for identifier, _ in one.candidates) or "-"
        counts = (f"{one.tests:,}", str(one.repeated), str(one.mended))
        table.add_row(bug.name, bug.has_it, bug.kind, bug.part, ids, *counts)
    run = [one for one in figures.outcomes if not one.not_run]
    lines = [Text(f"{sum(bool(one.candidates) for one in run)} of {len(run)} bugs have candidates")]
    lines += [Text(f"{one.bug.name} was not run: {one.not_run}") for one in figures.outcomes if one.not_run]
    return Group(table, *lines)


def migrated_view(figures: MigrationFigures) -> Group:
    """Return a line for each bug and archive, and for how many bugs each archive has candidates."""
    table = plain_table(
        "bug", "release", "class", "operator", "archive", "mended as", numbers=("ran", "failed", "mended", "taken")
    )
    for one in figures.outcomes:
        bug, kinds = one.bug, ", ".join(sorted({kind for kind, _, _ in one.mended})) or "-"
        counts = (f"{one.ran:,}", f"{one.failed:,}", str(_instances(one)), str(one.taken))
        table.add_row(bug.name, bug.has_it, bug.kind, bug.operators[0], one.archive, kinds, *counts)
    names = dict.fromkeys(one.archive for one in figures.outcomes)
    return Group(table, *(Text(_summary(name, figures.outcomes)) for name in names))


def _instances(one: MigratedBug) -> int:
    return sum(count for _, _, count in one.mended)


def _summary(archive: str, outcomes: tuple[MigratedBug, ...]) -> str:
    own = [one for one in outcomes if one.archive == archive]
    return f"{archive}: {sum(bool(one.mended) for one in own)} of {len(own)} bugs have candidates"
