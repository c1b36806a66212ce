"""SQLite databases: how they are opened and brought up to date, and their errors. The tables of a campaign's one.

A database has a sequence of migrations: entry i brings it from version i to i + 1. A shipped entry never changes; a
new table or column is a new entry. Several processes may open one database at the same time.
"""

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from miscompile.base.errors import InputError, StoreError

MIGRATIONS = (
    """
    CREATE TABLE campaign (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        target TEXT NOT NULL,
        seed TEXT NOT NULL,
        options TEXT NOT NULL,
        versions TEXT NOT NULL,
        started REAL NOT NULL
    );
    CREATE TABLE session (
        number INTEGER PRIMARY KEY,
        started REAL NOT NULL,
        seconds REAL NOT NULL DEFAULT 0,
        ending TEXT NOT NULL DEFAULT ''
    );
    CREATE TABLE counter (
        name TEXT PRIMARY KEY,
        value INTEGER NOT NULL
    );
    CREATE TABLE finding (
        identifier TEXT PRIMARY KEY,
        signature TEXT NOT NULL,
        settled INTEGER NOT NULL,
        status TEXT NOT NULL,
        kind TEXT NOT NULL,
        message TEXT NOT NULL,
        duplicates INTEGER NOT NULL DEFAULT 0,
        first_seen INTEGER NOT NULL,
        culprits TEXT NOT NULL,
        nodes INTEGER NOT NULL,
        reproduced INTEGER NOT NULL
    );
    CREATE UNIQUE INDEX finding_signature ON finding (signature) WHERE settled = 1;
    """,
    # An unconfirmed finding owns no signature, because the next occurrence may be confirmed.
    """
    DROP INDEX finding_signature;
    CREATE UNIQUE INDEX finding_signature ON finding (signature) WHERE settled = 1 AND status != 'unconfirmed';
    """,
    """
    CREATE TABLE firing (
        kind TEXT NOT NULL,
        target TEXT NOT NULL,
        one TEXT NOT NULL,
        other TEXT NOT NULL,
        count INTEGER NOT NULL,
        PRIMARY KEY (kind, target, one, other)
    ) WITHOUT ROWID;
    """,
    # Several campaigns write one store. A finding that is fixed owns no signature either, because a look-alike is a
    # regression.
    """
    ALTER TABLE campaign RENAME TO first_campaign;
    CREATE TABLE campaign (
        id INTEGER PRIMARY KEY,
        target TEXT NOT NULL,
        seed TEXT NOT NULL,
        options TEXT NOT NULL,
        versions TEXT NOT NULL,
        started REAL NOT NULL
    );
    INSERT INTO campaign SELECT id, target, seed, options, versions, started FROM first_campaign;
    DROP TABLE first_campaign;
    ALTER TABLE session RENAME TO first_session;
    CREATE TABLE session (
        campaign INTEGER NOT NULL,
        number INTEGER NOT NULL,
        started REAL NOT NULL,
        seconds REAL NOT NULL DEFAULT 0,
        ending TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (campaign, number)
    ) WITHOUT ROWID;
    INSERT INTO session SELECT 1, number, started, seconds, ending FROM first_session;
    DROP TABLE first_session;
    ALTER TABLE counter RENAME TO first_counter;
    CREATE TABLE counter (
        campaign INTEGER NOT NULL,
        name TEXT NOT NULL,
        value INTEGER NOT NULL,
        PRIMARY KEY (campaign, name)
    ) WITHOUT ROWID;
    INSERT INTO counter SELECT 1, name, value FROM first_counter;
    DROP TABLE first_counter;
    ALTER TABLE finding ADD COLUMN campaign INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE finding ADD COLUMN regression TEXT NOT NULL DEFAULT '';
    DROP INDEX finding_signature;
    CREATE UNIQUE INDEX finding_signature ON finding (signature)
        WHERE settled = 1 AND status != 'unconfirmed' AND status != 'fixed';
    """,
    """
    CREATE TABLE arm (
        name TEXT PRIMARY KEY,
        tests INTEGER NOT NULL,
        cpu_us INTEGER NOT NULL,
        violations INTEGER NOT NULL,
        signatures INTEGER NOT NULL,
        confirmed INTEGER NOT NULL,
        pairs INTEGER NOT NULL
    ) WITHOUT ROWID;
    """,
)

PATIENCE = 30.0
"""Seconds that a process waits for another one's write."""

_PAUSE = 0.02


@dataclass(frozen=True, slots=True)
class DatabaseKind:
    """A kind of database: its migrations, and the advice in its errors.

    `elsewhere` is the option that names another place, `update` the command that brings an old one up to date, and
    `repair` is what can be done about a damaged one.
    """

    migrations: Sequence[str]
    elsewhere: str
    update: str
    repair: str


INDEX = DatabaseKind(
    MIGRATIONS,
    "--out",
    "miscompile fuzz --resume",
    "every verb makes it anew from the folders beside it once no other process uses it",
)
"""The index of a store of findings."""


class DamagedDatabaseError(StoreError):
    """The file is no database of ours, or a page of it is damaged. An index can be made anew, a ledger cannot."""


def connect(database: Path, *, migrate: bool, kind: DatabaseKind = INDEX) -> sqlite3.Connection:
    """Open a database and check it; with `migrate` make it or bring it up to date. Raises StoreError."""
    with guarded(database, kind):
        fixed = not migrate and not os.access(database.parent, os.W_OK)
        connection = _read_only(database) if fixed else sqlite3.connect(database, timeout=PATIENCE)
        try:
            if not fixed:
                _log_ahead(connection)
                connection.execute("PRAGMA synchronous = NORMAL")
            problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if problem != "ok":
                raise sqlite3.DatabaseError(problem)
            _migrate(database, connection, kind, wanted=migrate)
        except BaseException:
            connection.close()
            raise
    return connection


def _read_only(database: Path) -> sqlite3.Connection:
    """Open a database in a folder that may not be written, where SQLite can make no shared memory for its log.

    Raises DamagedDatabaseError when a log lies beside it, without which it is incomplete.
    """
    log = database.with_name(f"{database.name}-wal")
    if log.exists() and log.stat().st_size:
        raise DamagedDatabaseError(f"{database} has an open log and may not be written")
    return sqlite3.connect(f"{database.absolute().as_uri()}?immutable=1", uri=True)


@contextmanager
def changing(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Hold the one write transaction of a database inside this block, and commit at its end; after an error undo it.

    The transaction begins before anything is read, so that no other process can write between a look-up and the change
    that depends on it. A block inside another one belongs to the outer transaction.
    """
    if connection.in_transaction:
        yield connection
        return
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection


def _log_ahead(connection: sqlite3.Connection) -> None:
    """Switch the write-ahead log on. SQLite does not wait for other processes here, so this function does."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(_PAUSE)
        else:
            return


def _migrate(database: Path, connection: sqlite3.Connection, kind: DatabaseKind, *, wanted: bool) -> None:
    """Migrate the schema; a reader (not `wanted`) changes nothing and needs the current schema."""
    newest, version = len(kind.migrations), _version(connection)
    if version > newest:
        raise InputError(
            f"{database} has schema version {version}, this miscompile knows {newest}; "
            f"use the newer miscompile that wrote it or choose another {kind.elsewhere}"
        )
    if version < newest and not wanted:
        if not version:  # a process makes its tables at this moment, or was killed before
            raise DamagedDatabaseError(f"{database} has no tables; {kind.repair}")
        raise InputError(f"{database} is of an older version; `{kind.update}` updates it")
    if version < newest:
        with changing(connection) as change:
            change.execute("CREATE TABLE IF NOT EXISTS migration (version INTEGER PRIMARY KEY)")
            for number in range(_version(connection), newest):  # another process may have been faster
                for statement in _statements(kind.migrations[number]):
                    change.execute(statement)
                change.execute("INSERT INTO migration VALUES (?)", (number + 1,))


def outdated(database: Path, kind: DatabaseKind = INDEX) -> bool:
    """Tell whether a database was made by an older version of this tool. Raises StoreError for a damaged one."""
    with guarded(database, kind), closing(sqlite3.connect(database, timeout=PATIENCE)) as connection:
        return 0 < _version(connection) < len(kind.migrations)


def _version(connection: sqlite3.Connection) -> int:
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "migration" not in tables:
        return 0
    return int(connection.execute("SELECT coalesce(max(version), 0) FROM migration").fetchone()[0])


def _statements(script: str) -> Iterator[str]:
    """Yield the statements of a script one by one, because `executescript` would commit the transaction first."""
    text = ""
    for piece in script.split(";"):
        text += piece + ";"
        if sqlite3.complete_statement(text):
            if text.strip() != ";":
                yield text
            text = ""


_NO_ROOM = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY_DBMOVED")


@contextmanager
def guarded(database: Path, kind: DatabaseKind = INDEX) -> Iterator[None]:
    """Turn SQLite's errors into StoreErrors that say what to do; an InputError where another path helps."""
    try:
        yield
    except sqlite3.OperationalError as error:
        cause = StoreError if getattr(error, "sqlite_errorname", "").startswith(_NO_ROOM) else InputError
        raise cause(f"cannot use {database}: {error}; choose another {kind.elsewhere} or make room there") from None
    except sqlite3.DatabaseError as error:
        raise DamagedDatabaseError(f"{database} is damaged ({error}); {kind.repair}") from None


def move_aside(database: Path) -> None:
    """Rename a damaged database, so that it is neither used nor destroyed; its log and shared memory are removed."""
    number = 0
    while (aside := database.with_name(f"{database.name}.damaged-{number}")).exists():
        number += 1
    if database.stat().st_size:
        database.rename(aside)
    _remove_logs(database)


def write_anew(database: Path, connection: sqlite3.Connection) -> None:
    """Write a database anew whose file was deleted while `connection` had it open; call it inside a transaction.

    The rows are still in the deleted file, which the operating system keeps until its last connection is closed.
    """
    fresh = database.with_name(f".new-{database.name}")
    fresh.write_bytes(connection.serialize())
    _remove_logs(database)
    fresh.replace(database)


def _remove_logs(database: Path) -> None:
    for ending in ("-wal", "-shm"):
        database.with_name(database.name + ending).unlink(missing_ok=True)
