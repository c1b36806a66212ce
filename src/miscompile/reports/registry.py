"""Reports of a campaign by name: those of this package, and those that other packages add (`miscompile.reports`)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from miscompile.base.plugins import Catalogue
from miscompile.findings.store import Store


@dataclass(frozen=True, slots=True)
class Report:
    """One way to hand over what a campaign found, from what is stored alone.

    `write(store, out)` writes files into the campaign's folder `out`, atomically, and returns their paths. It raises
    StoreError when it cannot. `title` says in a line what is written.
    """

    name: str
    title: str
    write: Callable[[Store, Path], Sequence[Path]]


REPORTS = Catalogue(
    "report",
    "miscompile.reports",
    Report,
    {
        "summary": "miscompile.reports.summary:SUMMARY",
        "issues": "miscompile.reports.writer:ISSUES",
        "site": "miscompile.reports.site.writer:SITE",
    },
)
