"""The contents of campaigns' stores as the site shows them, read once for all pages.

A finding that cannot be read keeps its row, if the index has one, and is named in `damaged`; all others are shown.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from miscompile.base.errors import InputError, StoreError, UsageError
from miscompile.core.activity import PassActivity
from miscompile.findings.folder import FindingStatus, Stored, identifiers, load, place
from miscompile.findings.ledger import LEDGER, Ledger
from miscompile.findings.ledger_entry import LedgerEntry
from miscompile.findings.store import Campaign, Record, Store, record_of
from miscompile.producers.slices.table import SupportTable, load_table
from miscompile.reports.summary import Summary, summarise

FindingGroup = Literal["new", "regressed", "known", "fixed", "non-default", "unconfirmed"]
"""What a finding is to its readers: announced, announced because it came back, known already, fixed in the release
under test, shown by no default build, or not repeated."""

GROUPS: tuple[FindingGroup, ...] = get_args(FindingGroup)

_GROUP_OF: dict[FindingStatus, FindingGroup] = {
    "pending": "new", "confirmed": "new", "non-default": "non-default", "unconfirmed": "unconfirmed", "known": "known",
    "fixed": "fixed",
}  # fmt: skip

SUPPORT = "support"
"""The folder in OUT in which the site looks for support tables, as `miscompile support --out OUT/support` writes."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A finding's row.

    `session` is the number of the session that found it (0: unknown), `arm` and `check` are those of its test, `link`
    is the upstream issue. `page` is the path of its page from the root of the site, empty when its folder is damaged.
    """

    store: str
    record: Record
    page: str = ""
    target: str = ""
    arm: str = ""
    check: str = ""
    session: int = 0
    link: str = ""

    @property
    def group(self) -> FindingGroup:
        """The group of the finding's status."""
        if self.record.regression:
            return "regressed"
        return _GROUP_OF[self.record.status]


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of one store; `label` is its name on the site and in paths, `out` its folder.

    `problems` are lines about parts that could not be read, `sessions` rows of `Store.sessions`.
    """

    label: str
    out: Path
    summary: Summary
    entries: tuple[Entry, ...] = ()
    campaigns: Mapping[int, Campaign] = field(default_factory=dict)
    sessions: Sequence[tuple[int, float, float, str]] = ()
    activity: PassActivity = field(default_factory=PassActivity)
    ledger: Sequence[LedgerEntry] = ()
    ledger_file: str = ""
    problems: Sequence[str] = ()

    @property
    def running(self) -> bool:
        """Tell whether a session has no end yet: the campaign runs, or was killed."""
        return any(not ending for _, _, _, ending in self.sessions)


class Reader:
    """Reads stores, and keeps findings that have not changed since, so that a site can be served live."""

    def __init__(self) -> None:
        self._kept: dict[Path, tuple[int, Stored]] = {}

    def read(self, outs: Sequence[Path]) -> list[Contents]:
        """Return the contents of the stores in `outs`. Raises InputError for a folder without a campaign."""
        return [self._read(label, out) for label, out in zip(labels(outs), outs, strict=True)]

    def finding(self, out: Path, identifier: str) -> Stored:
        """Return a finding. Raises StoreError when it is absent or damaged."""
        path = place(out, identifier) / "finding.json"
        try:
            stamp = path.stat().st_mtime_ns
        except OSError:
            return load(out, identifier)
        kept = self._kept.get(path)
        if kept is None or kept[0] != stamp:
            kept = self._kept[path] = (stamp, load(out, identifier))
        return kept[1]

    def _read(self, label: str, out: Path) -> Contents:
        if not out.is_dir():
            raise InputError(f"there is no folder {out}; name the folder of a campaign")
        with Store.open(out, create=False) as store:
            summary, campaigns, sessions = summarise(store), store.campaigns(), store.sessions()
            activity = PassActivity()
            activity.add(store.pass_activity())
            problems = list(store.damaged)
        entries = tuple(self._entries(label, out, summary.findings, problems))
        file, ledger = _ledger(out, campaigns, problems)
        return Contents(
            label, out, summary, entries, campaigns, sessions, activity, ledger, file, tuple(dict.fromkeys(problems))
        )

    def _entries(self, label: str, out: Path, records: Iterable[Record], problems: list[str]) -> Iterator[Entry]:
        rows = {record.identifier: record for record in records}
        on_disk = identifiers(out)
        for identifier in [*rows, *(name for name in on_disk if name not in rows)]:
            try:
                stored = self.finding(out, identifier)
            except StoreError as error:
                if identifier not in rows or identifier in on_disk:
                    problems.append(str(error))
                if identifier in rows:
                    yield Entry(label, rows[identifier])
                continue
            yield _entry(label, rows.get(identifier) or record_of(stored), stored)


def labels(outs: Sequence[Path]) -> list[str]:
    """Return a name for each folder, fit for paths, each once: the folder's own where it can be."""
    found: list[str] = []
    for out in outs:
        name = re.sub(r"[^A-Za-z0-9-]+", "-", out.resolve().name).strip("-") or "campaign"
        numbered = (f"{name}-{number}" for number in range(2, len(outs) + 2))
        found.append(name if name not in found else next(one for one in numbered if one not in found))
    return found


def support_tables(folders: Iterable[Path]) -> tuple[list[SupportTable], list[str]]:
    """Return the tables in all `.json` files of folders, and a line for each file that is none."""
    found, problems = [], []
    for path in sorted({path for folder in folders for path in folder.glob("*.json")}):
        try:
            found.append(load_table(path))
        except UsageError as error:
            problems.append(str(error))
    return found, problems


def web_link(text: str) -> str:
    """Return `text` if it is an address of the web, else an empty text: a page must not link to `javascript:`."""
    return text if re.match(r"https?://[^\s]+\Z", text) else ""


def _entry(label: str, record: Record, stored: Stored) -> Entry:
    recipe = stored.finding.case.recipe or (stored.original.recipe if stored.original else {})
    known, session = stored.finding.facts.get("known"), recipe.get("session", 0)
    return Entry(
        label,
        record,
        f"{label}/{record.identifier}.html",
        stored.finding.property.signature.target,
        str(recipe.get("arm", "")),
        str(recipe.get("check", "")) or stored.finding.property.oracle.partition("{")[0],
        session if isinstance(session, int) else 0,
        web_link(str(known.get("link", ""))) if isinstance(known, Mapping) else "",
    )


def _ledger(out: Path, campaigns: Mapping[int, Campaign], problems: list[str]) -> tuple[str, list[LedgerEntry]]:
    """Return the file and the entries of the campaigns' ledger; none where there is no file."""
    named = [str(one.options["ledger"]) for one in campaigns.values() if one.options.get("ledger")]
    path = Path(named[0]) if named else out / LEDGER
    if not path.exists():
        return "", []
    try:
        with Ledger.open(path, create=False) as ledger:
            return str(path), ledger.entries()
    except StoreError as error:
        problems.append(str(error))
        return str(path), []
