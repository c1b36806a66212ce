"""The tables of `miscompile.db`, as migrations: entry i brings the database from version i to i + 1.

A shipped entry never changes; a new table or column is a new entry.
"""

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
