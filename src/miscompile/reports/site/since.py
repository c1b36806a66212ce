"""The difference to last time: to the site that stands in the folder, or else to the last session's start.

A site leaves `site.json` beside its pages for the next one.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from miscompile.findings.ledger_entry import utc_now
from miscompile.reports.site.content import Contents, Entry

STATE = "site.json"
_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Since:
    """What is new: `when` says since when, `tests` were run, `changed` are (entry, group before)."""

    when: str
    tests: int | None
    fresh: Sequence[Entry] = ()
    changed: Sequence[tuple[Entry, str]] = ()
    gone: Sequence[str] = ()


def state_of(stores: Sequence[Contents]) -> dict[str, Any]:
    """Return what the next site compares itself with, as a JSON object."""
    return {
        "schema": _SCHEMA,
        "time": utc_now(),
        "stores": {
            store.label: {
                "tests": store.summary.tests,
                "findings": {entry.record.identifier: entry.group for entry in store.entries},
            }
            for store in stores
        },
    }


def read_state(folder: Path) -> Mapping[str, Any]:
    """Return the state that the site in `folder` left; empty where there is none that can be read."""
    try:
        data = json.loads((folder / STATE).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    fits = isinstance(data, dict) and data.get("schema") == _SCHEMA and isinstance(data.get("stores"), dict)
    return data if fits else {}


def since_last(stores: Sequence[Contents], before: Mapping[str, Any]) -> Since | None:
    """Return what is new since the state `before`; without one, in the last session of each store that has several.

    None when there is neither.
    """
    if before:
        return _since_state(stores, before)
    later = [store for store in stores if len(store.sessions) > 1]
    if not later:
        return None
    fresh = [entry for store in later for entry in store.entries if entry.session == _last_session(store)]
    return Since("the last session began", None, fresh)


def _since_state(stores: Sequence[Contents], before: Mapping[str, Any]) -> Since:
    fresh: list[Entry] = []
    changed: list[tuple[Entry, str]] = []
    gone: list[str] = []
    tests = 0
    for store in stores:
        old = before["stores"].get(store.label)
        old = old if isinstance(old, dict) else {}
        listed = old.get("findings")
        groups: dict[str, Any] = listed if isinstance(listed, dict) else {}
        count = old.get("tests", 0)
        tests += max(store.summary.tests - (count if isinstance(count, int) else 0), 0)
        present = set()
        for entry in store.entries:
            present.add(entry.record.identifier)
            was = groups.get(entry.record.identifier)
            if was is None:
                fresh.append(entry)
            elif was != entry.group:
                changed.append((entry, str(was)))
        gone += sorted(set(groups) - present)
    return Since(f"the previous site of {before.get('time', 'an unknown time')}", tests, fresh, changed, gone)


def _last_session(store: Contents) -> int:
    return max(number for number, *_ in store.sessions)
