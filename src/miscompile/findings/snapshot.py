"""The figures of a campaign beside its findings, in OUT/campaign.json, so that a lost index can be made anew.

The folders of the findings hold the findings alone. Their duplicates, the counters, the sessions and the options are
rows of the index; this file repeats them. It is replaced as a whole every few seconds, and it is what a new index
begins with.
"""

import json
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

from miscompile.findings.folder import writing

SNAPSHOT = "campaign.json"
_SCHEMA = 1
_TABLES = ("campaign", "session", "counter", "firing")


def write_snapshot(out: Path, connection: sqlite3.Connection) -> None:
    """Write the figures of the index to OUT/campaign.json atomically. Raises StoreError when that fails."""
    tables = {table: [list(row) for row in connection.execute(f"SELECT * FROM {table}")] for table in _TABLES}
    seen = dict(connection.execute("SELECT identifier, duplicates FROM finding WHERE duplicates > 0").fetchall())
    text = json.dumps({"schema": _SCHEMA, **tables, "duplicates": seen})
    fresh, path = out / f".new-{SNAPSHOT}", out / SNAPSHOT
    with writing(path):
        fresh.write_text(text + "\n", "utf-8")
        fresh.replace(path)


def restore_figures(out: Path, connection: sqlite3.Connection) -> None:
    """Enter the figures of OUT/campaign.json into an empty index; a damaged or absent file leaves it empty."""
    data = _read(out)
    with suppress(TypeError, sqlite3.Error), connection:
        for table in _TABLES:
            for row in data.get(table, []):
                connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * len(row))})", row)


def restore_duplicates(out: Path, connection: sqlite3.Connection) -> None:
    """Set the duplicates of the findings in the index to those of OUT/campaign.json, once the findings are entered."""
    with suppress(TypeError, AttributeError, sqlite3.Error), connection:
        rows = [(count, identifier) for identifier, count in _read(out).get("duplicates", {}).items()]
        connection.executemany("UPDATE finding SET duplicates = ? WHERE identifier = ?", rows)


def _read(out: Path) -> dict[str, Any]:
    try:
        data = json.loads((out / SNAPSHOT).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) and data.get("schema") == _SCHEMA else {}
