"""A run in CI: a campaign of a fixed number of tests, which begins with the bugs of a baseline in its ledger.

The baseline is a ledger as TOML, a file of the repository that people review. The run itself never changes it.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from miscompile.base.errors import InputError, UsageError
from miscompile.core.ports import Listener
from miscompile.engine.coordinator import Portion, fuzz
from miscompile.engine.known_bugs import name_in_ledger, new_entry, release_of
from miscompile.engine.plan import Plan
from miscompile.findings.folder import Stored
from miscompile.findings.ledger import Ledger
from miscompile.findings.ledger_entry import LedgerEntry, key_of
from miscompile.findings.ledger_file import read_ledger, write_ledger
from miscompile.findings.store import Store

_SHARD = re.compile(r"([0-9]+)/([0-9]+)")


@dataclass(frozen=True, slots=True)
class CiShard:
    """Part `number` of `count` parts of a run, from 1. All parts together make the tests of the run, each once."""

    number: int = 1
    count: int = 1

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def shard_from(text: str) -> CiShard:
    """Parse `2/5`. Raises UsageError."""
    match = _SHARD.fullmatch(text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise UsageError(f"--shard {text}: write I/N, from 1/N to N/N, as in 2/5")
    return CiShard(int(match[1]), int(match[2]))


def baseline_entries(path: Path | None, *, may_be_absent: bool) -> list[LedgerEntry]:
    """Return the entries of a baseline; none without one. Raises UsageError when it is absent or no ledger."""
    if path is None or (may_be_absent and not path.exists()):
        return []
    if not path.exists():
        raise InputError(f"there is no baseline {path}; --update-baseline makes it")
    return read_ledger(path)


def run(plan: Plan, shard: CiShard, baseline: Iterable[LedgerEntry], listeners: Sequence[Listener]) -> None:
    """Run the plan's `shard`; `plan.tests` are those of the whole run, and `plan.workers` the lanes of one shard.

    Raises UsageError when there are fewer tests than lanes, because a shard would then test nothing.
    """
    lanes = plan.workers * shard.count
    if plan.tests is None or plan.tests < lanes:
        raise UsageError(f"--tests {plan.tests}: {shard.count} shards of {plan.workers} lanes need at least {lanes}")
    with Ledger.open(plan.ledger_file) as ledger:
        ledger.merge(baseline)
    fuzz(plan, listeners, Portion(1, (shard.number - 1) * plan.workers, lanes, None))


def known_pending(stored: Stored, baseline: Iterable[LedgerEntry]) -> bool:
    """Tell whether a finding whose triage did not end has the signature of a bug that the baseline knows.

    Triaged findings have been held against it by the campaign.
    """
    key, entries = key_of(stored.finding.property.signature), {entry.key: entry for entry in baseline}
    entry = entries.get(key)
    met = {key}
    while entry is not None and entry.state == "duplicate-of" and entry.duplicate_of not in met:
        met.add(entry.duplicate_of)
        entry = entries.get(entry.duplicate_of, replace(entry, state="open"))
    return entry is not None and entry.absorbs(release_of(stored))


def update_baseline(path: Path, baseline: Sequence[LedgerEntry], store: Store, ledger: Path) -> int:
    """Write the baseline anew, with the bugs that the run has entered or reopened; return their number.

    Entries about which nothing was decided stay as they are, though the run may have met them, so that a review shows
    only decisions. A finding whose triage did not end is entered with the signature that it has so far.
    """
    before = {entry.key: entry for entry in baseline}
    with Ledger.open(ledger, create=False) as book:
        after = {entry.key: entry for entry in book.entries()}
    for record in store.pending():
        stored = store.load(record.identifier)
        entry = new_entry(stored, name_in_ledger(store.campaign()))
        if not known_pending(stored, baseline):
            after[entry.key] = entry
    fresh = {key: entry for key, entry in after.items() if _decisions(before.get(key)) != _decisions(entry)}
    if fresh or not path.exists():
        write_ledger(path, {**before, **fresh}.values())
    return len(fresh)


def _decisions(entry: LedgerEntry | None) -> tuple[str, ...]:
    return () if entry is None else (entry.state, entry.regressed_in, entry.duplicate_of, entry.fixed_in, entry.link)
