"""The store of findings: folders, and a SQLite index with counters beside them. Several campaigns may share one.

    OUT/miscompile.db     tables campaign, session, counter, finding, firing, arm, migration (write-ahead log)
    OUT/campaign.json     the counters, sessions and options again (`miscompile.findings.snapshot`)
    OUT/findings/         the findings themselves (`miscompile.findings.folder`)

The folders are authoritative, the database is an index: a finding whose row is missing because the process was killed
between the two writes is entered again when the first of its writers opens the store. An index that is absent or
damaged is made anew by a process that is the only writer, readers included; other readers make it in memory.

Several processes may write at the same time. Each campaign has a number from 1, sessions and counters of its own, and
triages the pending findings that it has found. Signatures are shared: a bug that two campaigns find is one finding.
Every change reads and writes in one transaction. The file `.lock` tells who writes: a writer holds its first byte
together with the other writers, or alone while it mends what a killed process left; a campaign that runs holds the
byte of its number alone. A store is used from the thread that opened it.
"""

import fcntl
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import IO, Any

from miscompile.base.errors import InputError, StoreError
from miscompile.core.arms import ArmYield
from miscompile.core.finding import Signature
from miscompile.findings import folder
from miscompile.findings.database import (
    DamagedDatabaseError,
    changing,
    connect,
    guarded,
    move_aside,
    outdated,
    write_anew,
)
from miscompile.findings.folder import FindingStatus, Stored
from miscompile.findings.snapshot import SNAPSHOT, listed_findings, restore_figures, restore_sightings, write_snapshot

DATABASE = "miscompile.db"
_LOCK = ".lock"
_OWNERS = "status != 'unconfirmed' AND status != 'fixed'"
_UNCONFIRMED = "status = 'unconfirmed'"
"""Conditions on the findings that own a signature."""

_ROW = "identifier, signature, status, kind, message, duplicates, first_seen, culprits, nodes, reproduced, regression"
_YIELD = tuple(field.name for field in fields(ArmYield))


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
    unknown), `nodes` the size of its program (0: unknown), `reproduced` whether a fresh process showed it again,
    `regression` the release that had fixed the bug before it came back (empty: no regression).
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
    regression: str = ""


@dataclass(slots=True)
class Store:
    """An open store; `path` is OUT. Make one with `Store.open`.

    `number` is that of the campaign to which sessions, counters and new findings belong. `damaged` has a line for each
    finding whose folder could not be read when the index was last compared with it.
    """

    path: Path
    _connection: sqlite3.Connection
    _lock: IO[bytes] | None = field(default=None)
    number: int = 1
    damaged: list[str] = field(default_factory=list)
    _inode: int = 0

    @classmethod
    def open(cls, path: Path, *, create: bool = True) -> "Store":
        """Open the store at `path` for writing, and make it if needed; without `create`, only for reading.

        An index that is absent or damaged is made anew from the folders, unless another process writes: a reader then
        makes it in memory, and a writer gets a StoreError. A damaged one is renamed; no existing data is destroyed.
        Raises InputError when there is no campaign, when the folder cannot be written, when the database is of a newer
        version.
        """
        if not create:
            return cls._for_reading(path)
        lock = _open_lock(path)
        try:
            # A process that mends holds the lock alone; who waited for it may be the only writer after it.
            alone = _lock_all(lock, alone=True) or (_lock_all(lock, alone=False) and _lock_all(lock, alone=True))
            store = cls._for_writing(path, lock, alone=alone)
            _lock_all(lock, alone=False)
        except BaseException:
            lock.close()
            raise
        return store

    @classmethod
    def _for_writing(cls, path: Path, lock: IO[bytes], *, alone: bool) -> "Store":
        """Open the index; a process that holds the lock alone makes it, and enters what a killed process left."""
        database = path / DATABASE
        if not alone and not database.exists():
            raise StoreError(f"{database} was deleted; the process that writes there makes it anew, so run again")
        try:
            connection = connect(database, migrate=True)
        except DamagedDatabaseError:
            if not alone:
                raise
            with folder.writing(database):
                move_aside(database)
            connection = connect(database, migrate=True)
        store = cls(path, connection, lock, _inode=_inode(database))
        if alone:
            try:
                folder.recover(path)
                store._fill() if not store.campaigns() else store.reindex()
            except BaseException:
                connection.close()
                raise
        return store

    @classmethod
    def _for_reading(cls, path: Path) -> "Store":
        database = path / DATABASE
        if not holds_campaign(path):
            raise InputError(f"there is no campaign in {path}; `miscompile fuzz TARGET --out {path}` starts one")
        try:
            if database.exists():
                return cls(path, connect(database, migrate=_can_update(path)))
        except DamagedDatabaseError:
            pass  # made anew below
        damaged = _remake(path)
        if damaged is not None:
            return cls(path, connect(database, migrate=False), damaged=damaged)
        store = cls(path, connect(Path(":memory:"), migrate=True))
        store._fill(write=False)
        return store

    def _fill(self, *, write: bool = True) -> None:
        """Fill a new index from the folders and the figures beside them; only with `write` may folders change."""
        with guarded(self.path / DATABASE):
            restore_figures(self.path, self._connection)
            self._restore_findings()
            self.reindex(removing=write)
            restore_sightings(self.path, self._connection)

    def _restore_findings(self) -> None:
        """Enter the triaged findings that the lost index had, each by itself although two may share a signature.

        A finding whose script did not show the bug, and a later one whose script did, are two findings.
        """
        listed = listed_findings(self.path)
        for identifier in folder.identifiers(self.path):
            stored = self._readable(identifier) if identifier in listed else None
            if stored is not None and stored.status != "pending":
                signature = stored.finding.property.signature
                self._insert(record_of(stored), signature, campaign=self._finder(stored))

    def keep_figures(self) -> None:
        """Repeat counters, sessions and options outside the index; make an index anew that was deleted meanwhile.

        Raises StoreError when the campaign's folder was deleted, or cannot be written.
        """
        if not (self.path / _LOCK).exists():
            raise StoreError(f"{self.path} was deleted or moved while the campaign was running")
        with self._change() as change:
            write_snapshot(self.path, change)

    def close(self) -> None:
        """Close the database and give the locks back. Idempotent."""
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
        with self._change():
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
        with self._change():
            if self._seen_again(record.identifier):
                return False
            if not unexplained and self.duplicate(signature):
                folder.remove(self.path, record.identifier)
                return False
            self._insert(record, signature, settled=not unexplained)
        return True

    def settle(self, identifier: str, apart: TellApart | None = None) -> Stored | None:
        """Enter the new state of a finding whose folder a triage worker has written, and return it.

        None when another finding has its signature: that finding's duplicates are incremented, and this folder is
        removed. `apart` may tell the new finding and the other one apart, by a signature for the new one; it is not
        asked when the other one's folder is damaged.
        """
        with self._change():
            stored = self.load(identifier)
            owner = self._owner(stored.finding.property.signature)
            other = self._readable(owner) if owner not in (None, identifier) else None
            if apart is not None and other is not None and (fresh := apart(stored, other)):
                held = replace(stored.finding.property, signature=fresh)
                stored = replace(stored, finding=replace(stored.finding, property=held))
                folder.save(self.path, stored)
            if self._merged(stored):
                return None
            self._insert(record_of(stored), stored.finding.property.signature)
        return stored

    def update(self, stored: Stored, *, new: bool = False) -> bool:
        """Write a finding's state; return False when another finding has its signature.

        In that case this finding and its duplicates are added to the other one's duplicates, and this one is removed. A
        finding that is `new` here belongs to the campaign whose seed and target it has.
        """
        undecided = stored.status == "pending" and bool(stored.finding.facts.get(UNEXPLAINED))
        with self._change():
            if not undecided and self._merged(stored):
                return False
            folder.save(self.path, stored)
            finder = self._finder(stored) if new else None
            self._insert(record_of(stored), stored.finding.property.signature, settled=not undecided, campaign=finder)
        return True

    def duplicate(self, signature: Signature) -> bool:
        """Increment the duplicates of the finding with `signature`; return whether there is one."""
        with self._change() as change:
            owner = self._owner(signature)
            if owner is None:
                return False
            change.execute("UPDATE finding SET duplicates = duplicates + 1 WHERE identifier = ?", (owner,))
        return True

    def with_signature(self, signature: Signature) -> Stored | None:
        """Return the finding that has a signature; None when there is none, or its folder is damaged."""
        owner = self._owner(signature)
        return None if owner is None else self._readable(owner)

    def add_duplicates(self, record: Record, more: int) -> None:
        """Add `more` duplicates to the finding of `record`, or to the one that has its signature if it was merged."""
        for where, value in (("identifier", record.identifier), ("settled = 1 AND signature", record.signature)):
            with self._change() as change:
                query = f"UPDATE finding SET duplicates = duplicates + ? WHERE {where} = ?"
                if change.execute(query, (more, value)).rowcount:
                    return

    def findings(self, status: FindingStatus | None = None, *, own: bool = False) -> list[Record]:
        """Return the rows of all findings, or of those with `status`, in the order in which they were first seen.

        With `own` they are those that this campaign has found.
        """
        wanted = {"status = ?": status, "campaign = ?": self.number if own else None}
        given = {condition: value for condition, value in wanted.items() if value is not None}
        where = f"WHERE {' AND '.join(given)}" if given else ""
        query = f"SELECT {_ROW} FROM finding {where} ORDER BY first_seen, rowid"
        return [_record(*row) for row in self._rows(query, tuple(given.values()))]

    def pending(self) -> list[Record]:
        """Return the findings of this campaign that were not triaged yet, which it triages when it is resumed."""
        return self.findings("pending", own=True)

    def load(self, identifier: str) -> Stored:
        """Read one finding from its folder. Raises StoreError when it is absent or damaged."""
        return folder.load(self.path, identifier)

    def counters(self) -> dict[str, int]:
        """Return all counters, summed over sessions and campaigns."""
        return dict(self._rows("SELECT name, sum(value) FROM counter GROUP BY name ORDER BY name"))

    def add_counters(self, more: Mapping[str, int]) -> None:
        """Add to the counters; unknown names start at zero."""
        with self._change() as change:
            change.executemany(
                "INSERT INTO counter VALUES (?, ?, ?)"
                " ON CONFLICT (campaign, name) DO UPDATE SET value = value + excluded.value",
                [(self.number, name, value) for name, value in more.items()],
            )

    def pass_activity(self) -> list[tuple[str, str, str, str, int]]:
        """Return the pass counts, summed over sessions and campaigns, as rows of `core.activity.PassActivity`."""
        query = "SELECT kind, target, one, other, count FROM firing ORDER BY kind, target, one, other"
        return [(kind, target, one, other, count) for kind, target, one, other, count in self._rows(query)]

    def add_pass_activity(self, rows: Iterable[tuple[str, str, str, str, int]]) -> None:
        """Add rows to the pass counts."""
        with self._change() as change:
            change.executemany(
                "INSERT INTO firing VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (kind, target, one, other) DO UPDATE SET count = count + excluded.count",
                list(rows),
            )

    def arms(self) -> dict[str, ArmYield]:
        """Return the yields of the arms by name, summed over the sessions; empty for a campaign without arms."""
        with self._change() as change:
            rows = change.execute(f"SELECT name, {', '.join(_YIELD)} FROM arm ORDER BY name").fetchall()
        return {name: ArmYield(*counts) for name, *counts in rows}

    def add_arms(self, more: Mapping[str, ArmYield]) -> None:
        """Add to the yields of arms; unknown names start at zero."""
        sums = ", ".join(f"{name} = {name} + excluded.{name}" for name in _YIELD)
        with self._change() as change:
            change.executemany(
                f"INSERT INTO arm (name, {', '.join(_YIELD)}) VALUES (?, ?, ?, ?, ?, ?, ?)"
                f" ON CONFLICT (name) DO UPDATE SET {sums}",
                [(name, *(getattr(counts, column) for column in _YIELD)) for name, counts in more.items()],
            )

    def campaign(self) -> Campaign | None:
        """Return the parameters of this campaign; None before `begin`, or when the database was recreated."""
        return self.campaigns().get(self.number)

    def campaigns(self) -> dict[int, Campaign]:
        """Return the parameters of all campaigns, by number."""
        rows = self._rows("SELECT id, target, seed, options, versions, started FROM campaign ORDER BY id")
        return {row[0]: Campaign(row[1], int(row[2]), json.loads(row[3]), json.loads(row[4]), row[5]) for row in rows}

    def campaign_of(self, identifier: str) -> Campaign | None:
        """Return the parameters of the campaign that has found a finding; those of the first when it is unknown."""
        rows = self._rows("SELECT campaign FROM finding WHERE identifier = ?", (identifier,))
        campaigns = self.campaigns()
        return campaigns.get(rows[0][0] if rows else 1, campaigns.get(1))

    def choose(self, number: int) -> None:
        """Let this process run the campaign `number`. Raises InputError when another process does."""
        self.number = number
        if self._lock is not None and not _lock_campaign(self._lock, number):
            raise InputError(
                f"another process is running campaign {number} in {self.path}; wait for it, or --join another campaign"
            )

    def begin(self, campaign: Campaign) -> int:
        """Add a campaign with these parameters, let this process run it, and return its number.

        Raises InputError when the store has one of the same targets and seed, which would repeat it.
        """
        options, versions = json.dumps(dict(campaign.options)), json.dumps(dict(campaign.versions))
        with self._change() as change:
            for number, other in self.campaigns().items():
                if (other.target, other.seed) == (campaign.target, campaign.seed):
                    raise InputError(
                        f"campaign {number} in {self.path} tests {other.target} with the seed {other.seed} already; "
                        "continue it with --resume, or choose another --seed"
                    )
            added = change.execute(
                "INSERT INTO campaign (target, seed, options, versions, started) VALUES (?, ?, ?, ?, ?)",
                (campaign.target, str(campaign.seed), options, versions, campaign.started),
            )
            self.choose(int(added.lastrowid or 0))
        return self.number

    def begin_session(self, started: float) -> int:
        """Note that a session of this campaign starts at `started` (seconds since 1970); return its number, from 1."""
        with self._change() as change:
            query = "SELECT coalesce(max(number), 0) + 1 FROM session WHERE campaign = ?"
            number = int(change.execute(query, (self.number,)).fetchone()[0])
            insert = "INSERT INTO session (campaign, number, started) VALUES (?, ?, ?)"
            change.execute(insert, (self.number, number, started))
        return number

    def note_session(self, number: int, seconds: float, ending: str = "") -> None:
        """Record the duration of this campaign's session `number` in seconds, and at its end the reason of its end."""
        with self._change() as change:
            update = "UPDATE session SET seconds = ?, ending = ? WHERE campaign = ? AND number = ?"
            change.execute(update, (seconds, ending, self.number, number))

    def sessions(self) -> list[tuple[int, float, float, str]]:
        """Return (number, started, seconds, ending) of every session, campaign by campaign."""
        query = "SELECT number, started, seconds, ending FROM session ORDER BY campaign, number"
        return [(number, started, seconds, ending) for number, started, seconds, ending in self._rows(query)]

    def _owner(self, signature: Signature, where: str = _OWNERS) -> str | None:
        if not _settled(signature):
            return None
        with self._change() as change:
            row = change.execute(
                f"SELECT identifier FROM finding WHERE signature = ? AND settled = 1 AND {where} ORDER BY rowid",
                (_plain(str(signature)),),
            ).fetchone()
        return row and str(row[0])

    def _seen_again(self, identifier: str) -> bool:
        """Increment the duplicates of a finding in the index; return whether it is there."""
        with self._change() as change:
            known = change.execute("UPDATE finding SET duplicates = duplicates + 1 WHERE identifier = ?", (identifier,))
        return bool(known.rowcount)

    def _merged(self, stored: Stored) -> bool:
        """If another finding has the signature, count this one as its duplicate and remove it; return whether so.

        An unconfirmed finding owns its signature against unconfirmed ones only, because the next may be confirmed.
        """
        identifier, signature = stored.finding.identifier, stored.finding.property.signature
        with self._change() as change:
            other = self._owner(signature)
            if other is None and stored.status == "unconfirmed":
                other = self._owner(signature, _UNCONFIRMED)
            if other in (None, identifier):
                return False
            own = change.execute("SELECT duplicates FROM finding WHERE identifier = ?", (identifier,))
            more = 1 + sum(row[0] for row in own.fetchall())
            change.execute("UPDATE finding SET duplicates = duplicates + ? WHERE identifier = ?", (more, other))
            change.execute("DELETE FROM finding WHERE identifier = ?", (identifier,))
        folder.remove(self.path, identifier)
        return True

    def _insert(
        self, record: Record, signature: Signature, *, settled: bool = True, campaign: int | None = None
    ) -> None:
        values = (
            record.identifier, record.signature, int(settled and _settled(signature)), record.status,
            record.kind, record.message, record.first_seen, json.dumps(record.culprits), record.nodes,
            int(record.reproduced), record.regression, self.number if campaign is None else campaign,
        )  # fmt: skip
        with self._change() as change:
            change.execute(
                "INSERT INTO finding (identifier, signature, settled, status, kind, message, first_seen, culprits,"
                " nodes, reproduced, regression, campaign) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (identifier) DO UPDATE SET"
                " signature = excluded.signature, settled = excluded.settled, status = excluded.status,"
                " kind = excluded.kind, message = excluded.message, culprits = excluded.culprits,"
                " nodes = excluded.nodes, reproduced = excluded.reproduced, regression = excluded.regression,"
                " first_seen = CASE WHEN excluded.first_seen < 0 THEN first_seen ELSE excluded.first_seen END",
                values,
            )

    def reindex(self, *, removing: bool = True) -> None:
        """Update the rows from the folders, because a kill between the two writes can make them differ.

        A folder that cannot be read is left as it is, and named in `damaged`. Without `removing` nothing on disk
        changes, not even for two findings of one signature. Only the one writer of a store may call this, because
        others write folders before rows.
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
            stored = self._readable(identifier)
            if stored is not None and removing:
                self.update(stored, new=row is None)
            elif stored is not None:
                signature = stored.finding.property.signature
                own = stored.finding.facts.get(UNEXPLAINED) is None and self._owner(signature) is None
                self._insert(record_of(stored), signature, settled=own, campaign=self._finder(stored))

    def adopt(self) -> None:
        """Enter the findings that this campaign's lanes have saved and not told, because they were ended before."""
        rows = {record.identifier for record in self.findings()}
        for identifier in folder.identifiers(self.path):
            if identifier in rows:
                continue
            stored = self._readable(identifier)
            if stored is not None and self._finder(stored) == self.number:
                with suppress(InputError):  # another campaign may remove the folder now
                    self.update(stored)

    def _readable(self, identifier: str) -> Stored | None:
        """Return a finding; None when its folder is gone, or is damaged, which `damaged` then says."""
        try:
            return self.load(identifier)
        except StoreError as error:
            if folder.place(self.path, identifier).is_dir() and str(error) not in self.damaged:
                self.damaged.append(str(error))
            return None

    def _finder(self, stored: Stored) -> int:
        """Return the number of the campaign that has found a finding without a row: by seed and target."""
        seed, target = stored.finding.case.recipe.get("seed"), stored.finding.property.target
        campaigns = self.campaigns()
        fitting = [number for number, one in campaigns.items() if target in one.target.split(" ")]
        return next((one for one in fitting if campaigns[one].seed == seed), next(iter(fitting), 1))

    def _rows(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with guarded(self.path / DATABASE):
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        with guarded(self.path / DATABASE):
            outer = self._connection.in_transaction
            while True:
                with changing(self._connection) as change:
                    if outer or not self._lost():
                        yield change
                        return
                self._follow()

    def _lost(self) -> bool:
        """Tell whether the index was deleted under this writer; false when the whole folder was."""
        return self._lock is not None and _inode(self.path / DATABASE) != self._inode and (self.path / _LOCK).exists()

    def _follow(self) -> None:
        """Go on in a new file of an index that was deleted: the one that another writer has made, or make it.

        The writers agree by the write lock of the deleted file, so that no row is written to it afterwards.
        """
        database = self.path / DATABASE
        with changing(self._connection) as change, folder.writing(database):
            if not database.exists():
                write_anew(database, change)
        fresh = connect(database, migrate=True)
        self._connection.close()
        self._connection, self._inode = fresh, _inode(database)


def own_folder(out: Path, number: int) -> Path:
    """Return the folder of files that belong to one campaign in `out` alone: `out` itself for the first one."""
    return out if number == 1 else out / "campaigns" / str(number)


def holds_campaign(path: Path) -> bool:
    """Tell whether a folder holds a campaign, even one whose index is lost."""
    return (path / DATABASE).exists() or (path / SNAPSHOT).exists() or (path / "findings").is_dir()


def record_of(stored: Stored) -> Record:
    """Return the row of a finding; the facts `test`, `nodes`, `reproduced` and `regression` are optional."""
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
        regression=str(facts.get("regression", {}).get("fixed_in", "")),
    )


def _record(
    identifier: str, signature: str, status: FindingStatus, kind: str, message: str, duplicates: int, first_seen: int,
    culprits: str, nodes: int, reproduced: int, regression: str,
) -> Record:  # fmt: skip
    return Record(
        identifier, signature, status, kind, message, duplicates, first_seen, tuple(json.loads(culprits)), nodes,
        bool(reproduced), regression,
    )  # fmt: skip


def _plain(text: str) -> str:
    """Return `text` without lone surrogates, which come from compilers' invalid bytes and which SQLite refuses."""
    return text.encode("utf-8", "backslashreplace").decode()


def _settled(signature: Signature) -> bool:
    return bool(signature.culprits or signature.text)


def _remake(path: Path) -> list[str] | None:
    """Make the index anew for a reader, and return a line for each damaged finding; None when it may not or must not.

    That is when the folder cannot be written, and while another process writes.
    """
    try:
        lock = _open_lock(path)
    except InputError:
        return None
    with lock:
        if not _lock_all(lock, alone=True):
            return None
        store = Store._for_writing(path, lock, alone=True)
        store.close()
        return store.damaged


def _inode(database: Path) -> int:
    try:
        return database.stat().st_ino
    except OSError:
        return 0


def _can_update(path: Path) -> bool:
    """Tell whether a reader can bring the database up to date: it is outdated, and no process writes."""
    if not os.access(path, os.W_OK) or not outdated(path / DATABASE):
        return False
    with _open_lock(path) as lock:
        return _lock_all(lock, alone=True)


def _open_lock(path: Path) -> IO[bytes]:
    with folder.writing(path):
        path.mkdir(parents=True, exist_ok=True)
        return (path / _LOCK).open("a+b")


def _lock_all(lock: IO[bytes], *, alone: bool) -> bool:
    """Hold the byte of all writers: `alone` if nobody else writes (returns whether so), else together with them."""
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB if alone else fcntl.LOCK_SH, 1, 0)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _lock_campaign(lock: IO[bytes], number: int) -> bool:
    """Hold the byte of a campaign that runs; return False when another process does."""
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
    except (BlockingIOError, PermissionError):
        return False
    return True
