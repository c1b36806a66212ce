"""The ledger of bugs: a SQLite file that tells which bugs are known, in all campaigns that share it.

A campaign writes to `OUT/ledger.db` unless it is given another file. Several processes may write one ledger at the
same time: every change reads and writes in one short transaction. A ledger is used from the thread that opened it.
"""

import difflib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from miscompile.base.errors import UsageError
from miscompile.core.finding import Signature
from miscompile.findings.database import DatabaseKind, changing, connect, guarded
from miscompile.findings.encode import signature_from
from miscompile.findings.folder import writing
from miscompile.findings.ledger_entry import BugState, LedgerEntry, checked, united

LEDGER = "ledger.db"
"""The name of a campaign's own ledger, in its folder."""

_KIND = DatabaseKind(
    (
        """
        CREATE TABLE bug (
            key TEXT PRIMARY KEY,
            signature TEXT NOT NULL,
            state TEXT NOT NULL,
            link TEXT NOT NULL,
            note TEXT NOT NULL,
            fixed_in TEXT NOT NULL,
            regressed_in TEXT NOT NULL,
            duplicate_of TEXT NOT NULL,
            first_release TEXT NOT NULL,
            last_release TEXT NOT NULL,
            found TEXT NOT NULL,
            changed TEXT NOT NULL,
            seen INTEGER NOT NULL,
            campaign TEXT NOT NULL,
            finding TEXT NOT NULL,
            message TEXT NOT NULL,
            predicate TEXT NOT NULL
        );
        """,
    ),
    elsewhere="--ledger",
    update="miscompile bugs list",
    repair="restore it, or move it (and its -wal and -shm) away and `miscompile bugs import` an exported file",
)
"""`signature`, the parts of the signature, and `predicate` are JSON."""

_COLUMNS = ("key", *(one.name for one in fields(LedgerEntry)))
_NEAR = 3


@dataclass(slots=True)
class Ledger:
    """An open ledger; `path` is its file. Make one with `Ledger.open`."""

    path: Path
    _connection: sqlite3.Connection
    _version: int = 0

    @classmethod
    def open(cls, path: Path, *, create: bool = True) -> "Ledger":
        """Open the ledger in the file `path`, and make it if needed.

        Raises StoreError when it is damaged, of a newer version, or cannot be written; without `create` also when
        there is none.
        """
        if not create and not path.exists():
            raise UsageError(f"there is no ledger {path}; a campaign makes one, and `miscompile bugs import` does")
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        return cls(path, connect(path, migrate=True, kind=_KIND))

    def close(self) -> None:
        """Close the file. Idempotent."""
        with suppress(sqlite3.Error):
            self._connection.close()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def entries(self, states: Iterable[BugState] = ()) -> list[LedgerEntry]:
        """Return all entries, or those in one of `states`, sorted by signature."""
        wanted = tuple(states)
        with guarded(self.path, _KIND):
            rows = self._connection.execute(f"SELECT {', '.join(_COLUMNS)} FROM bug ORDER BY key").fetchall()
        return [entry for entry in map(_entry, rows) if not wanted or entry.state in wanted]

    def get(self, key: str) -> LedgerEntry | None:
        """Return the entry of a signature, as `key_of` prints it; None when there is none."""
        with guarded(self.path, _KIND):
            query = f"SELECT {', '.join(_COLUMNS)} FROM bug WHERE key = ?"
            row = self._connection.execute(query, (key,)).fetchone()
        return row and _entry(row)

    def root(self, entry: LedgerEntry) -> LedgerEntry:
        """Return the entry that `entry` is a duplicate of, through any number of others; itself when it is none.

        The last entry of a chain whose end is absent counts.
        """
        met = {entry.key}
        while entry.state == "duplicate-of" and entry.duplicate_of not in met:
            met.add(entry.duplicate_of)
            following = self.get(entry.duplicate_of)
            if following is None:
                break
            entry = following
        return entry

    def find(self, text: str) -> LedgerEntry:
        """Return the entry whose signature or finding is `text`, or begins with it.

        Raises UsageError with near misses when none or several do.
        """
        entries = self.entries()
        exact = [one for one in entries if text in (one.key, one.finding)]
        found = exact or [one for one in entries if one.key.startswith(text) or one.finding.startswith(text)]
        if len(found) == 1 and text:
            return found[0]
        if found and text:
            raise UsageError(f"'{text}' begins {len(found)} bugs: {', '.join(one.key for one in found[:_NEAR])}, ...")
        names = [name for one in entries for name in (one.key, one.finding) if name]
        near = difflib.get_close_matches(text, names, _NEAR)
        hint = f"did you mean {' or '.join(near)}?" if near else "`miscompile bugs list` lists them"
        raise UsageError(f"there is no bug '{text}' in {self.path}; {hint}")

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the one write transaction inside this block, so that what is read in it stays true until its end."""
        with guarded(self.path, _KIND), changing(self._connection):
            yield

    def put(self, entry: LedgerEntry) -> None:
        """Write an entry, replacing the one of its signature. Raises UsageError for an invalid entry."""
        values = _row(checked(entry))
        with self.changing():
            self._connection.execute(
                f"INSERT OR REPLACE INTO bug ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})", values
            )

    def change(self, key: str, step: Callable[[LedgerEntry], LedgerEntry]) -> LedgerEntry | None:
        """Replace the entry of a signature by what `step` makes of it, and return that; None when there is none."""
        with self.changing():
            entry = self.get(key)
            if entry is None:
                return None
            fresh = step(entry)
            self.put(fresh)
        return fresh

    def sight(self, times: Mapping[str, int], release: str) -> set[str]:
        """Count the sightings of bugs in `release`, by signature; return the signatures that have no entry."""
        absent = set()
        with self.changing():
            for key, count in times.items():
                entry = self.get(key)
                if entry is None:
                    absent.add(key)
                else:
                    self.put(entry.sighted(release, count))
        return absent

    def duplicate(self, key: str, of: str, now: str) -> None:
        """Make an entry a duplicate of another one. Raises UsageError when that one is a duplicate of the first."""
        with self.changing():
            entry, other = self.get(key), self.get(of)
            if entry is None or other is None:
                raise UsageError(f"there is no bug '{of if entry else key}' in {self.path}")
            if self.root(other).key == key:
                raise UsageError(f"{of} is {key} or a duplicate of it")
            self.put(entry.duplicating(of, now))

    def merge(self, entries: Iterable[LedgerEntry]) -> tuple[int, int]:
        """Unite the entries of another ledger with those here, all or none; return how many are new, and changed.

        Raises UsageError for an invalid entry, and for duplicates in a circle.
        """
        new = changed = 0
        with self.changing():
            for entry in entries:
                own = self.get(entry.key)
                fresh = checked(entry) if own is None else united(own, checked(entry))
                new, changed = new + (own is None), changed + (own is not None and fresh != own)
                self.put(fresh)
            for entry in self.entries(("duplicate-of",)):
                if self.root(entry).state == "duplicate-of" and self.get(self.root(entry).duplicate_of):
                    raise UsageError(f"{entry.key} is a duplicate of itself, through {entry.duplicate_of}")
        return new, changed

    def changed_elsewhere(self) -> bool:
        """Tell whether another process has written since the last call. Cheap: it reads one number."""
        with guarded(self.path, _KIND):
            version = int(self._connection.execute("PRAGMA data_version").fetchone()[0])
        before, self._version = self._version, version
        return before not in (0, version)


def _row(entry: LedgerEntry) -> tuple[Any, ...]:
    parts = entry.signature
    signature = {name: getattr(parts, name) for name in ("target", "kind", "stage", "culprits", "text")}
    packed = {"signature": json.dumps(signature), "predicate": json.dumps(entry.predicate), "key": entry.key}
    return tuple(packed[name] if name in packed else _plain(getattr(entry, name)) for name in _COLUMNS)


def _entry(row: tuple[Any, ...]) -> LedgerEntry:
    values = dict(zip(_COLUMNS, row, strict=True))
    del values["key"]
    signature: Signature = signature_from(json.loads(values["signature"]))
    return replace(LedgerEntry(**{**values, "signature": signature}), predicate=json.loads(values["predicate"]))


def _plain(value: Any) -> Any:  # noqa: ANN401 - texts and numbers
    """Return a text without lone surrogates, which SQLite refuses."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
