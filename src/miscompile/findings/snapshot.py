"""The figures of a store beside its findings, in OUT/campaign.json, so that a lost index can be made anew.

The folders of the findings hold the findings alone. Their duplicates and finders, and every campaign's counters,
sessions and options, are rows of the index; this file repeats them. It is replaced as a whole every few seconds, and it
is what a new index begins with.
"""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from miscompile.findings.database import changing
from miscompile.findings.folder import writing

SNAPSHOT = "campaign.json"
_SCHEMA = 1
_TABLES = ("campaign", "session", "counter", "firing", "arm")


def write_snapshot(out: Path, connection: sqlite3.Connection) -> None:
    """Write the figures of the index to OUT/campaign.json atomically. Raises StoreError when that fails.

    Call it inside a write transaction of the index, because several campaigns may share the file.
    """
    tables = {table: _objects(connection, f"SELECT * FROM {table}") for table in _TABLES}
    seen = _objects(connection, "SELECT identifier, duplicates, campaign FROM finding")
    text = json.dumps({"schema": _SCHEMA, **tables, "finding": seen})
    fresh, path = out / f".new-{SNAPSHOT}", out / SNAPSHOT
    with writing(path):
        fresh.write_text(text + "\n", "utf-8")
        fresh.replace(path)


def restore_figures(out: Path, connection: sqlite3.Connection) -> None:
    """Enter the figures of OUT/campaign.json into an empty index; a damaged or absent file leaves it empty."""
    data = _read(out)
    with suppress(TypeError, sqlite3.Error), changing(connection):
        for table in _TABLES:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            for row in data.get(table, []):
                names = [name for name in columns if name in row]  # a file of another version may have fewer, or more
                places = ", ".join("?" * len(names))
                insert = f"INSERT OR REPLACE INTO {table} ({', '.join(names)}) VALUES ({places})"
                connection.execute(insert, [row[name] for name in names])


def restore_sightings(out: Path, connection: sqlite3.Connection) -> None:
    """Set the duplicates and finders of the findings to those of OUT/campaign.json, once the findings are entered."""
    update = "UPDATE finding SET duplicates = :duplicates, campaign = :campaign WHERE identifier = :identifier"
    with suppress(TypeError, sqlite3.Error), changing(connection):
        connection.executemany(update, [row for row in _read(out).get("finding", []) if isinstance(row, Mapping)])


def listed_findings(out: Path) -> frozenset[str]:
    """Return the identifiers of the findings that the index had when OUT/campaign.json was last written."""
    rows = [row for row in _read(out).get("finding", []) if isinstance(row, Mapping)]
    return frozenset(str(row.get("identifier")) for row in rows)


def _objects(connection: sqlite3.Connection, query: str) -> list[dict[str, Any]]:
    with closing(connection.execute(query)) as rows:
        names = [column[0] for column in rows.description]
        return [dict(zip(names, row, strict=True)) for row in rows]


def _read(out: Path) -> dict[str, Any]:
    try:
        data = json.loads((out / SNAPSHOT).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) and data.get("schema") == _SCHEMA else {}
