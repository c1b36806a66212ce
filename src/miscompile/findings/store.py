"""The store of one campaign: findings as folders, and a SQLite index with counters beside them.

    OUT/miscompile.db     tables campaign, session, counter, finding, migration (write-ahead log)
    OUT/campaign.json     the counters, sessions and options again (`miscompile.findings.snapshot`)
    OUT/findings/         the findings themselves (`miscompile.findings.folder`)

The folders are authoritative, the database is an index: a finding whose row is missing because the process was killed
between the two writes is entered again when a writer opens the store. An index that is absent or damaged is made anew
by whoever opens the store, readers included. One process at a time writes; a second writer gets a StoreError. A store
is used from the thread that opened it.
"""

import fcntl
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from miscompile.base.errors import InputError, StoreError
from miscompile.core.finding import Signature
from miscompile.findings import folder
from miscompile.findings.database import DamagedIndexError, connect, guarded, move_aside, remade
from miscompile.findings.folder import FindingStatus, Stored
from miscompile.findings.snapshot import SNAPSHOT, restore_duplicates, restore_figures, write_snapshot

DATABASE = "miscompile.db"
_LOCK = ".lock"
_ROW = "identifier, signature, status, kind, message, duplicates, first_seen, culprits, nodes, reproduced"


UNEXPLAINED = "unexplained"
"""The fact of a pending finding that may be another bug than the one that has its signature."""

TellApart = Callable[[Stored, Stored], Signature | None]
"""Given two findings of one signature, the later first: a signature of its own for the later one, if it is another bug,
else None."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """The parameters of a campaign. `started` is in seconds since 1970, `options` and `versions` are JSON objects."""

    target: str
    seed: int
    options: Mapping[str, Any]
    versions: Mapping[str, str]
    started: float


@dataclass(frozen=True, slots=True)
class Record:
    """A finding's row in the index, for tables that must not open its folder.

    `duplicates` counts later findings of the same signature, `first_seen` is the index of the test that found it (-1:
    unknown), `nodes` the size of its program (0: unknown), `reproduced` whether a fresh process showed it again.
    """

    identifier: str
    signature: str
    status: FindingStatus
    kind: str
    message: str = ""
    duplicates: int = 0
    first_seen: int = -1
    culprits: tuple[str, ...] = ()
    nodes: int = 0
    reproduced: bool = False


@dataclass(slots=True)
class Store:
    """An open store; `path` is OUT. Make one with `Store.open`.

    `damaged` has a line for each finding whose folder could not be read when the index was last compared with it.
    """

    path: Path
    _connection: sqlite3.Connection
    _lock: IO[bytes] | None = field(default=None)
    damaged: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, path: Path, *, create: bool = True) -> "Store":
        """Open the store at `path` as its one writer, and make it if needed; without `create`, only for reading.

        An index that is absent or damaged is made anew from the folders; a reader that may not write makes it in
        memory. A damaged one is renamed, and no existing data is destroyed. Raises StoreError when there is no
        campaign, when the folder cannot be written, when another process writes to it, when the database is of a newer
        version.
        """
        database = path / DATABASE
        if not create and not database.exists():
            if not holds_campaign(path):
                raise InputError(f"there is no campaign in {path}; `miscompile fuzz TARGET --out {path}` starts one")
            return cls._rebuilt(path)
        try:
            return cls._opened(path, create=create)
        except DamagedIndexError:
            return cls._rebuilt(path, write=create)

    @classmethod
    def _rebuilt(cls, path: Path, *, write: bool = False) -> "Store":
        """Make the index anew; with `write` return the store as its writer, else for reading."""
        database = path / DATABASE
        try:
            with _take_lock(path):
                try:
                    made = cls._opened(path, create=True, lock=False)  # another process may have been faster
                except DamagedIndexError:
                    with folder.writing(database):
                        move_aside(database)
                    made = cls._opened(path, create=True, lock=False)
                made.close()
        except InputError:
            if write:
                raise
            store = cls(path, connect(Path(":memory:"), migrate=True))
            store._fill()
            return store
        return cls._opened(path, create=write)

    @classmethod
    def _opened(cls, path: Path, *, create: bool, lock: bool = True) -> "Store":
        held = _take_lock(path) if create and lock else None
        database = path / DATABASE
        try:
            store = cls(path, connect(database, migrate=create), held)
            if create:
                folder.recover(path)
                if store.campaign() is None:
                    store._fill(write=True)
                else:
                    store.reindex()
        except BaseException:
            if held:
                held.close()
            raise
        return store

    def _fill(self, *, write: bool = False) -> None:
        """Fill a new index from the folders and the figures beside them; only with `write` may folders change."""
        with guarded(self.path / DATABASE):
            restore_figures(self.path, self._connection)
            self.reindex(removing=write)
            restore_duplicates(self.path, self._connection)

    def keep_figures(self) -> None:
        """Repeat counters, sessions and options outside the index; make an index anew that was deleted meanwhile.

        Raises StoreError when the campaign's folder was deleted, or cannot be written.
        """
        database = self.path / DATABASE
        if not (self.path / _LOCK).exists():
            raise StoreError(f"{self.path} was deleted or moved while the campaign was running")
        if not database.exists():
            with guarded(database):
                self._connection = remade(database, self._connection)
        with guarded(database):
            write_snapshot(self.path, self._connection)

    def close(self) -> None:
        """Close the database and let another writer in. Idempotent."""
        if self._lock and not self._lock.closed:
            with suppress(StoreError):
                self.keep_figures()
        with suppress(sqlite3.Error):
            self._connection.close()
        if self._lock:
            self._lock.close()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add_pending(self, stored: Stored) -> bool:
        """Store a new finding; return True when it was written.

        When another finding has the same settled signature, its duplicates are incremented instead, and nothing is
        written. A signature is settled once it has culprits or a text. The same case stored twice is a duplicate of
        itself.
        """
        identifier, signature = stored.finding.identifier, stored.finding.property.signature
        if self.duplicate(signature) or self._seen_again(identifier):
            return False
        folder.save(self.path, stored)
        self._insert(record_of(stored), signature)
        return True

    def register(self, record: Record, signature: Signature, *, unexplained: bool = False) -> bool:
        """Enter a pending finding whose folder another process has written; return True when it is new.

        The folder of a duplicate is removed. The same case written twice is a duplicate of itself. An `unexplained`
        finding is entered although another one has its signature, because it may be another bug; `settle` decides.
        """
        if self._seen_again(record.identifier):
            return False
        if not unexplained and self.duplicate(signature):
            folder.remove(self.path, record.identifier)
            return False
        self._insert(record, signature, settled=not unexplained)
        return True

    def settle(
        self, identifier: str, apart: Callable[[Stored, Stored], Signature | None] | None = None
    ) -> Stored | None:
        """Enter the new state of a finding whose folder a triage worker has written, and return it.

        None when another finding has its signature: that finding's duplicates are incremented, and this folder is
        removed. `apart` may tell the new finding and the other one apart, by a signature for the new one.
        """
        stored = self.load(identifier)
        owner = self._owner(stored.finding.property.signature)
        if apart is not None and owner not in (None, identifier) and (fresh := self._told_apart(apart, stored, owner)):
            held = replace(stored.finding.property, signature=fresh)
            stored = replace(stored, finding=replace(stored.finding, property=held))
            folder.save(self.path, stored)
        if self._merged(stored):
            return None
        self._insert(record_of(stored), stored.finding.property.signature)
        return stored

    def _told_apart(self, apart: TellApart, stored: Stored, owner: str) -> Signature | None:
        """Return a signature for `stored` if it is another bug than `owner`; None also when that one is damaged."""
        try:
            other = self.load(owner)
        except StoreError as error:
            self.damaged.append(str(error))
            return None
        return apart(stored, other)

    def update(self, stored: Stored) -> bool:
        """Write a finding's new state; return False when another finding has its signature.

        In that case this finding and its duplicates are added to the other one's duplicates, and this one is removed.
        """
        undecided = stored.status == "pending" and bool(stored.finding.facts.get(UNEXPLAINED))
        if not undecided and self._merged(stored):
            return False
        folder.save(self.path, stored)
        self._insert(record_of(stored), stored.finding.property.signature, settled=not undecided)
        return True

    def duplicate(self, signature: Signature) -> bool:
        """Increment the duplicates of the finding with `signature`; return whether there is one."""
        owner = self._owner(signature)
        if owner is None:
            return False
        with self._change() as change:
            change.execute("UPDATE finding SET duplicates = duplicates + 1 WHERE identifier = ?", (owner,))
        return True

    def findings(self, status: FindingStatus | None = None) -> list[Record]:
        """Return the rows of all findings, or of those with `status`, in the order in which they were first seen."""
        wanted = "" if status is None else "WHERE status = ?"
        with self._change() as change:
            rows = change.execute(
                f"SELECT {_ROW} FROM finding {wanted} ORDER BY first_seen, rowid", (status,) if status else ()
            ).fetchall()
        return [_record(*row) for row in rows]

    def pending(self) -> list[Record]:
        """Return the findings that were not triaged yet, which a resumed campaign triages."""
        return self.findings("pending")

    def load(self, identifier: str) -> Stored:
        """Read one finding from its folder. Raises StoreError when it is absent or damaged."""
        return folder.load(self.path, identifier)

    def counters(self) -> dict[str, int]:
        """Return all counters, summed over the sessions."""
        with self._change() as change:
            return dict(change.execute("SELECT name, value FROM counter ORDER BY name").fetchall())

    def add_counters(self, more: Mapping[str, int]) -> None:
        """Add to the counters; unknown names start at zero."""
        with self._change() as change:
            change.executemany(
                "INSERT INTO counter VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
                list(more.items()),
            )

    def pass_activity(self) -> list[tuple[str, str, str, str, int]]:
        """Return the pass counts, summed over the sessions, as rows of `core.activity.PassActivity`."""
        with self._change() as change:
            query = "SELECT kind, target, one, other, count FROM firing ORDER BY kind, target, one, other"
            return [tuple(row) for row in change.execute(query).fetchall()]

    def add_pass_activity(self, rows: Iterable[tuple[str, str, str, str, int]]) -> None:
        """Add rows to the pass counts."""
        with self._change() as change:
            change.executemany(
                "INSERT INTO firing VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (kind, target, one, other) DO UPDATE SET count = count + excluded.count",
                list(rows),
            )

    def campaign(self) -> Campaign | None:
        """Return the parameters of the campaign; None before `begin`, or when the database was recreated."""
        with self._change() as change:
            row = change.execute("SELECT target, seed, options, versions, started FROM campaign").fetchone()
        return row and Campaign(row[0], int(row[1]), json.loads(row[2]), json.loads(row[3]), row[4])

    def begin(self, campaign: Campaign) -> None:
        """Note what the campaign was started with, replacing an older note."""
        options, versions = json.dumps(dict(campaign.options)), json.dumps(dict(campaign.versions))
        with self._change() as change:
            change.execute(
                "INSERT OR REPLACE INTO campaign VALUES (1, ?, ?, ?, ?, ?)",
                (campaign.target, str(campaign.seed), options, versions, campaign.started),
            )

    def begin_session(self, started: float) -> int:
        """Note that a session starts at `started` (seconds since 1970); return its number, from 1."""
        with self._change() as change:
            return int(change.execute("INSERT INTO session (started) VALUES (?)", (started,)).lastrowid or 0)

    def note_session(self, number: int, seconds: float, ending: str = "") -> None:
        """Record the duration of session `number` in seconds, and, at its end, the reason of its end."""
        with self._change() as change:
            change.execute("UPDATE session SET seconds = ?, ending = ? WHERE number = ?", (seconds, ending, number))

    def sessions(self) -> list[tuple[int, float, float, str]]:
        """Return (number, started, seconds, ending) of every session."""
        with self._change() as change:
            return change.execute("SELECT number, started, seconds, ending FROM session ORDER BY number").fetchall()

    def _owner(self, signature: Signature) -> str | None:
        if not _settled(signature):
            return None
        with self._change() as change:
            row = change.execute(
                "SELECT identifier FROM finding WHERE signature = ? AND settled = 1 AND status != 'unconfirmed'",
                (_plain(str(signature)),),
            ).fetchone()
        return row and str(row[0])

    def _seen_again(self, identifier: str) -> bool:
        """Increment the duplicates of a finding in the index; return whether it is there."""
        with self._change() as change:
            known = change.execute("UPDATE finding SET duplicates = duplicates + 1 WHERE identifier = ?", (identifier,))
        return bool(known.rowcount)

    def _merged(self, stored: Stored) -> bool:
        """If another finding has the signature, count this one as its duplicate and remove it; return whether so."""
        identifier, other = stored.finding.identifier, self._owner(stored.finding.property.signature)
        if other in (None, identifier):
            return False
        with self._change() as change:
            own = change.execute("SELECT duplicates FROM finding WHERE identifier = ?", (identifier,))
            more = 1 + sum(row[0] for row in own.fetchall())
            change.execute("UPDATE finding SET duplicates = duplicates + ? WHERE identifier = ?", (more, other))
            change.execute("DELETE FROM finding WHERE identifier = ?", (identifier,))
        folder.remove(self.path, identifier)
        return True

    def _insert(self, record: Record, signature: Signature, *, settled: bool = True) -> None:
        values = (
            record.identifier, record.signature, int(settled and _settled(signature)), record.status,
            record.kind, record.message, record.first_seen, json.dumps(record.culprits), record.nodes,
            int(record.reproduced),
        )  # fmt: skip
        with self._change() as change:
            change.execute(
                "INSERT INTO finding (identifier, signature, settled, status, kind, message, first_seen, culprits,"
                " nodes, reproduced) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (identifier) DO UPDATE SET"
                " signature = excluded.signature, settled = excluded.settled, status = excluded.status,"
                " kind = excluded.kind, message = excluded.message, culprits = excluded.culprits,"
                " nodes = excluded.nodes, reproduced = excluded.reproduced,"
                " first_seen = CASE WHEN excluded.first_seen < 0 THEN first_seen ELSE excluded.first_seen END",
                values,
            )

    def reindex(self, *, removing: bool = True) -> None:
        """Update the rows from the folders, because a kill between the two writes can make them differ.

        A folder that cannot be read is left as it is, and named in `damaged`. Without `removing` nothing on disk
        changes, not even for two findings of one signature.
        """
        rows = {record.identifier: record for record in self.findings()}
        names = folder.identifiers(self.path)
        with self._change() as change:
            gone = [(name,) for name, row in rows.items() if row.status == "pending" and name not in names]
            change.executemany("DELETE FROM finding WHERE identifier = ?", gone)
        self.damaged.clear()
        for identifier in names:
            row = rows.get(identifier)
            if row is not None and row.status != "pending":
                continue
            try:
                stored = folder.load(self.path, identifier)
            except StoreError as error:
                self.damaged.append(str(error))
                continue
            if removing:
                self.update(stored)
            else:
                signature = stored.finding.property.signature
                own = stored.finding.facts.get(UNEXPLAINED) is None and self._owner(signature) is None
                self._insert(record_of(stored), signature, settled=own)

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        with guarded(self.path / DATABASE), self._connection:
            yield self._connection


def holds_campaign(path: Path) -> bool:
    """Tell whether a folder holds a campaign, even one whose index is lost."""
    return (path / DATABASE).exists() or (path / SNAPSHOT).exists() or (path / "findings").is_dir()


def record_of(stored: Stored) -> Record:
    """Return the row of a finding; the facts `test`, `nodes` and `reproduced` are optional."""
    finding, facts = stored.finding, stored.finding.facts
    signature = finding.property.signature
    return Record(
        finding.identifier,
        _plain(str(signature)),
        stored.status,
        signature.kind,
        _plain(finding.message),
        first_seen=int(facts.get("test", -1)),
        culprits=signature.culprits,
        nodes=int(facts.get("nodes", 0)),
        reproduced=bool(facts.get("reproduced", False)),
    )


def _record(
    identifier: str, signature: str, status: FindingStatus, kind: str, message: str, duplicates: int, first_seen: int,
    culprits: str, nodes: int, reproduced: int,
) -> Record:  # fmt: skip
    return Record(
        identifier, signature, status, kind, message, duplicates, first_seen, tuple(json.loads(culprits)), nodes,
        bool(reproduced),
    )  # fmt: skip


def _plain(text: str) -> str:
    """Return `text` without lone surrogates, which come from compilers' invalid bytes and which SQLite refuses."""
    return text.encode("utf-8", "backslashreplace").decode()


def _settled(signature: Signature) -> bool:
    return bool(signature.culprits or signature.text)


def _take_lock(path: Path) -> IO[bytes]:
    with folder.writing(path):
        path.mkdir(parents=True, exist_ok=True)
        lock = (path / _LOCK).open("ab")
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            lock.close()
            raise InputError(f"another process is writing to {path}; wait for it or choose another --out") from None
    return lock
