"""Support tables as values and JSON, and the difference between two of them."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from miscompile.base.errors import UsageError

FORMAT = 1


@dataclass(frozen=True, slots=True)
class SupportTable:
    """The result of every node case on one target; each of `rows` has name, op, version, dtype, status, message."""

    target: str
    versions: Mapping[str, str]
    level: str
    rows: tuple[Mapping[str, Any], ...]

    @property
    def totals(self) -> dict[str, int]:
        """Number of cases by status, the most frequent first."""
        return dict(Counter(str(row["status"]) for row in self.rows).most_common())

    @property
    def matrix(self) -> dict[str, dict[str, dict[str, dict[str, int]]]]:
        """Operator -> version of its schema -> element type -> status -> number of cases."""
        found: dict[str, dict[str, dict[str, dict[str, int]]]] = {}
        for row in sorted(self.rows, key=lambda row: (row["op"], row["version"], row["dtype"])):
            cell = found.setdefault(row["op"], {}).setdefault(str(row["version"]), {}).setdefault(row["dtype"], {})
            cell[row["status"]] = cell.get(row["status"], 0) + 1
        return found

    def as_json(self) -> dict[str, Any]:
        """Return the table as a JSON object."""
        return {
            "format": FORMAT,
            "target": self.target,
            "versions": dict(self.versions),
            "level": self.level,
            "totals": self.totals,
            "matrix": self.matrix,
            "rows": [dict(row) for row in self.rows],
        }


def load_table(path: Path) -> SupportTable:
    """Read a table that was written as JSON. Raises UsageError when it is none."""
    try:
        data = json.loads(path.read_text("utf-8"))
        if data["format"] != FORMAT:
            raise UsageError(f"{path} is a support table of another version of this tool; make it anew")
        return SupportTable(data["target"], data["versions"], data["level"], tuple(data["rows"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} is no support table ({type(error).__name__}: {error})") from None


def difference(before: SupportTable, after: SupportTable) -> list[dict[str, Any]]:
    """Return every case whose status differs, or that only one table has (status ""), in order of operators."""
    old, new = ({row["name"]: row for row in table.rows} for table in (before, after))
    found = []
    for name in sorted(old.keys() | new.keys()):
        one, other = old.get(name), new.get(name)
        known = other or one
        assert known is not None
        was, now = (one or {}).get("status", ""), (other or {}).get("status", "")
        if was != now:
            found.append({**known, "before": was, "after": now})
    return sorted(found, key=lambda row: (row["op"], row["name"]))
