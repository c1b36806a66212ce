"""The database of a campaign, `miscompile.db`: how it is opened and brought up to date, and its errors.

`MIGRATIONS` are the tables: entry i brings the database from version i to i + 1. A shipped entry never changes; a new
table or column is a new entry.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from miscompile.base.errors import StoreError

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
VERSION = len(MIGRATIONS)


def connect(database: Path, *, migrate: bool) -> sqlite3.Connection:
    """Open a database and check it; with `migrate` make it or bring it up to date. Raises StoreError."""
    with guarded(database):
        connection = sqlite3.connect(database, timeout=30.0)
        try:
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


def _migrate(database: Path, connection: sqlite3.Connection, *, wanted: bool) -> None:
    """Migrate the schema; a reader (not `wanted`) changes nothing and needs the current schema."""
    if wanted:
        connection.execute("CREATE TABLE IF NOT EXISTS migration (version INTEGER PRIMARY KEY)")
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    version = 0
    if "migration" in tables:
        version = connection.execute("SELECT coalesce(max(version), 0) FROM migration").fetchone()[0]
    if version > VERSION:
        raise StoreError(
            f"{database} has schema version {version}, this miscompile knows {VERSION}; "
            "use the newer miscompile that wrote it or choose another --out"
        )
    if version < VERSION and not wanted:
        raise StoreError(f"{database} is being made, or is of an older version; `miscompile fuzz --resume` updates it")
    for number in range(version, VERSION):
        step = f"BEGIN; {MIGRATIONS[number]} INSERT INTO migration VALUES ({number + 1}); COMMIT;"
        connection.executescript(step)


@contextmanager
def guarded(database: Path) -> Iterator[None]:
    """Turn SQLite's errors into StoreErrors that say what to do."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StoreError(f"cannot use {database}: {error}; choose another --out or make room there") from None
    except sqlite3.DatabaseError as error:
        raise StoreError(
            f"{database} is damaged ({error}); the findings beside it are not touched: move it (and its -wal and "
            "-shm) away and run again with --resume, which makes the index anew from the folders"
        ) from None
