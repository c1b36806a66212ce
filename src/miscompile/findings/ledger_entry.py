"""The entry of a bug in a ledger, its states, and how two accounts of one bug are united.

Campaigns, people and teams write ledgers at the same time. So all changes are functions of an entry that return the
new one, and `united` gives the same result in whatever order the accounts come.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from miscompile.base.errors import UsageError
from miscompile.base.versions import is_version, order
from miscompile.core.finding import Signature

BugState = Literal["open", "reported", "fixed-in", "wontfix", "duplicate-of", "invalid"]
"""Not reported yet; upstream knows it; fixed in a release; it will stay; the same bug as another entry; no bug."""

STATES: tuple[BugState, ...] = get_args(BugState)

_RELEASE = re.compile(r"==[^:{]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A bug of a compiler, in all its releases.

    The target of `signature` names no release. `link` is the upstream issue and `note` a line for people. `fixed_in` is
    the release of the state `fixed-in`, `duplicate_of` the signature of the state `duplicate-of`. `regressed_in` is the
    release in which the bug was seen although an older one had it fixed; then the state is `open` again. The bug was
    seen in the releases `first_release` to `last_release` (empty: unknown), `seen` times. `found` is the time of the
    first entry and `changed` that of the last decision, both in UTC as `2026-01-31T12:00:00Z`. `campaign` and `finding`
    name the finding that was announced, and `message` is its message. `predicate` is the bug predicate, as
    `triage.predicate` reads it; None when there is none.
    """

    signature: Signature
    state: BugState = "open"
    link: str = ""
    note: str = ""
    fixed_in: str = ""
    regressed_in: str = ""
    duplicate_of: str = ""
    first_release: str = ""
    last_release: str = ""
    found: str = ""
    changed: str = ""
    seen: int = 1
    campaign: str = ""
    finding: str = ""
    message: str = ""
    predicate: Mapping[str, Any] | None = field(default=None, hash=False)

    @property
    def key(self) -> str:
        """The signature as text, by which the ledger knows the bug."""
        return key_of(self.signature)

    def absorbs(self, release: str) -> bool:
        """Tell whether a look-alike in `release` is this bug again, and not a regression of it."""
        return self.state != "fixed-in" or not reaches(release, self.fixed_in)

    def sighted(self, release: str, times: int = 1) -> "LedgerEntry":
        """Return the entry after the bug was seen in `release`; one that is no version widens no range."""
        seen_in = release if is_version(release) else ""
        first, last = _span([self.first_release, self.last_release, seen_in])
        return replace(self, first_release=first, last_release=last, seen=self.seen + times)

    def linked(self, link: str, note: str, now: str) -> "LedgerEntry":
        """Return the entry with an upstream issue. An open bug is reported then; other states stay."""
        state = "reported" if self.state == "open" else self.state
        return replace(self, state=state, link=link, note=note or self.note, changed=now)

    def closed(self, state: BugState, note: str, now: str, fixed_in: str = "") -> "LedgerEntry":
        """Return the entry in one of the states `fixed-in`, `wontfix` and `invalid`."""
        return replace(
            self, state=state, fixed_in=fixed_in, regressed_in="", duplicate_of="", note=note or self.note, changed=now
        )

    def duplicating(self, other: str, now: str) -> "LedgerEntry":
        """Return the entry as a duplicate of the one with the signature `other`."""
        return replace(self, state="duplicate-of", duplicate_of=other, changed=now)

    def reopened(self, now: str) -> "LedgerEntry":
        """Return the entry as a bug that is there: reported if it has a link, else open."""
        return replace(self, state="reported" if self.link else "open", duplicate_of="", changed=now)

    def regressed(self, release: str, campaign: str, finding: str, now: str) -> "LedgerEntry":
        """Return the entry after the finding of a campaign was announced as a regression in `release`.

        It is open again, so that the regression is announced once.
        """
        back = replace(self.sighted(release), state="open", regressed_in=release, changed=now)
        return replace(back, campaign=campaign, finding=finding)


def utc_now() -> str:
    """Return the time in the form of ledgers, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def of_all_releases(signature: Signature) -> Signature:
    """Return a signature without the release in its target, because a bug is the same in all releases."""
    return replace(signature, target=_RELEASE.sub("", signature.target, count=1))


def key_of(signature: Signature) -> str:
    """Return the text of a signature in ledgers: without release, and without lone surrogates, which SQLite refuses."""
    return str(of_all_releases(signature)).encode("utf-8", "backslashreplace").decode()


def reaches(release: str, fixed_in: str) -> bool:
    """Tell whether `release` is `fixed_in` or a later one; False when either is no version.

    Local parts (`+cpu`) do not count.
    """
    if not is_version(release) or not is_version(fixed_in):
        return False
    return order(release.partition("+")[0]) >= order(fixed_in.partition("+")[0])


def united(one: LedgerEntry, other: LedgerEntry) -> LedgerEntry:
    """Unite two accounts of one bug: the later decision, the wider range of releases, the earlier discovery.

    The operation is commutative, associative and idempotent, so that teams may import each other's files in any order,
    and more than once. Raises UsageError when the entries are of different bugs.
    """
    if one.key != other.key:
        raise UsageError(f"{one.key} and {other.key} are different bugs")
    decided = max(one, other, key=_decision)
    born = min(one, other, key=_discovery)
    first, last = _span([one.first_release, one.last_release, other.first_release, other.last_release])
    known = min((each for each in (one, other) if each.predicate is not None), key=_predicate_rank, default=born)
    return replace(
        decided, first_release=first, last_release=last, found=born.found, campaign=born.campaign,
        finding=born.finding, message=born.message, predicate=known.predicate, seen=max(one.seen, other.seen),
    )  # fmt: skip


def checked(entry: LedgerEntry) -> LedgerEntry:
    """Return a valid entry, as it is. Raises UsageError for an invalid state, release or time."""
    needs = {"fixed-in": entry.fixed_in, "duplicate-of": entry.duplicate_of}
    if entry.state not in STATES:
        raise UsageError(f"{entry.key}: there is no state '{entry.state}'; there are: {', '.join(STATES)}")
    if not needs.get(entry.state, "none"):
        raise UsageError(f"{entry.key}: the state {entry.state} needs {entry.state.replace('-', '_')}")
    for name in ("fixed_in", "regressed_in", "first_release", "last_release"):
        version = getattr(entry, name)
        if version and not is_version(version):
            raise UsageError(f"{entry.key}: {name}: '{version}' is no version; write one such as 1.20.1")
    for name in ("found", "changed"):
        try:
            datetime.strptime(getattr(entry, name), "%Y-%m-%dT%H:%M:%SZ")
        except ValueError:
            raise UsageError(f"{entry.key}: {name} is no time such as 2026-01-31T12:00:00Z") from None
    return entry


def _span(releases: list[str]) -> tuple[str, str]:
    """Return the first and the last of some releases; two empty texts without any. Equal versions are told by text."""
    known = sorted((one for one in releases if one), key=lambda one: (order(one), one))
    return (known[0], known[-1]) if known else ("", "")


def _decision(entry: LedgerEntry) -> tuple[str, ...]:
    decided = (entry.state, entry.link, entry.note, entry.fixed_in, entry.regressed_in, entry.duplicate_of)
    return entry.changed, *decided


def _discovery(entry: LedgerEntry) -> tuple[str, ...]:
    return entry.found, entry.campaign, entry.finding, entry.message


def _predicate_rank(entry: LedgerEntry) -> str:
    return json.dumps(entry.predicate, sort_keys=True)
