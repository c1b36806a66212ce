"""The database of a campaign, `miscompile.db`: how it is opened and brought up to date, and its errors.

`MIGRATIONS` are the tables: entry i brings the database from version i to i + 1. A shipped entry never changes; a new
table or column is a new entry.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
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
)
VERSION = len(MIGRATIONS)


def connect(database: Path, *, migrate: bool) -> sqlite3.Connection:
    """Open a database and check it; with `migrate` make it or bring it up to date. Raises StoreError."""
    with guarded(database):
        fixed = not migrate and not os.access(database.parent, os.W_OK)
        connection = _read_only(database) if fixed else sqlite3.connect(database, timeout=30.0)
        try:
            if not fixed:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
            problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if problem != "ok":
                raise sqlite3.DatabaseError(problem)
            _migrate(database, connection, wanted=migrate)
        except BaseException:
            connection.close()
            raise
    return connection


def _read_only(database: Path) -> sqlite3.Connection:
    """Open an index in a folder that may not be written, where SQLite can make no shared memory for its log.

    Raises DamagedIndexError when a log lies beside it, without which it is incomplete.
    """
    log = database.with_name(f"{database.name}-wal")
    if log.exists() and log.stat().st_size:
        raise DamagedIndexError(f"{database} has an open log and may not be written")
    return sqlite3.connect(f"{database.absolute().as_uri()}?immutable=1", uri=True)


def _migrate(database: Path, connection: sqlite3.Connection, *, wanted: bool) -> None:
    """Migrate the schema; a reader (not `wanted`) changes nothing and needs the current schema."""
    if wanted:
        connection.execute("CREATE TABLE IF NOT EXISTS migration (version INTEGER PRIMARY KEY)")
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    version = 0
    if "migration" in tables:
        version = connection.execute("SELECT coalesce(max(version), 0) FROM migration").fetchone()[0]
    if version > VERSION:
        raise InputError(
            f"{database} has schema version {version}, this miscompile knows {VERSION}; "
            "use the newer miscompile that wrote it or choose another --out"
        )
    if version < VERSION and not wanted:
        if not version:  # nobody has made its tables, or whoever was about to was killed
            raise DamagedIndexError(f"{database} has no tables")
        raise InputError(f"{database} is of an older version; `miscompile fuzz --resume` updates it")
    for number in range(version, VERSION):
        step = f"BEGIN; {MIGRATIONS[number]} INSERT INTO migration VALUES ({number + 1}); COMMIT;"
        connection.executescript(step)


class DamagedIndexError(StoreError):
    """The index is no database, or a page of it is damaged; it can be made anew from the folders."""


_NO_ROOM = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY_DBMOVED")


@contextmanager
def guarded(database: Path) -> Iterator[None]:
    """Turn SQLite's errors into StoreErrors that say what to do."""
    try:
        yield
    except sqlite3.OperationalError as error:
        kind = StoreError if getattr(error, "sqlite_errorname", "").startswith(_NO_ROOM) else InputError
        raise kind(f"cannot use {database}: {error}; choose another --out or make room there") from None
    except sqlite3.DatabaseError as error:
        raise DamagedIndexError(
            f"{database} is damaged ({error}); every verb makes it anew from the folders beside it once no other "
            "process uses it"
        ) from None


def move_aside(database: Path) -> None:
    """Rename a damaged index, so that it is neither used nor destroyed; its log and shared memory are removed."""
    number = 0
    while (aside := database.with_name(f"{database.name}.damaged-{number}")).exists():
        number += 1
    if database.stat().st_size:
        database.rename(aside)
    for ending in ("-wal", "-shm"):
        database.with_name(database.name + ending).unlink(missing_ok=True)


def remade(database: Path, connection: sqlite3.Connection) -> sqlite3.Connection:
    """Write an index anew whose file was deleted while `connection` had it open, and return a connection to it.

    The rows are still in the deleted file, which the operating system keeps until the connection is closed.
    """
    held = sqlite3.connect(":memory:")
    connection.backup(held)
    connection.close()
    for ending in ("-wal", "-shm"):
        database.with_name(database.name + ending).unlink(missing_ok=True)
    with sqlite3.connect(database) as fresh:
        held.backup(fresh)
    fresh.close()
    held.close()
    return connect(database, migrate=True)
