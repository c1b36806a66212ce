"""Refusals: the programs that a target does not take, by operator and reason.

A refusal is lawful where `known.toml` lists its message, and no finding. Users see a refusal as a bug all the same if
the target takes the operator otherwise. So a campaign counts both: the table says for each operator how many programs
of it alone were taken, how many were refused, and for which reasons.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from miscompile.base.errors import UsageError
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome, Rejected, Unsupported, Values
from miscompile.core.run import Run
from miscompile.findings.store import Store
from miscompile.targets.known import known
from miscompile.targets.registry import parse_target
from miscompile.triage.signature import normalise

REFUSED, TAKEN = "refused by ", "taken by "
"""Begin the counters of refused and of taken programs; target, operator and reason follow, between bars."""

_BAR = " | "
_REASON_LENGTH = 120


@dataclass(frozen=True, slots=True)
class RefusalRow:
    """How often `target` refused programs for `reason`.

    They consist of `operator` alone, of which it took `taken` programs; an empty operator stands for graphs of several,
    for which nothing is counted that was taken. `form` tells whether the refusal depends on the form of the call.
    """

    target: str
    operator: str
    reason: str
    refused: int
    taken: int

    @property
    def form(self) -> bool:
        """Whether the target takes the operator in other forms."""
        return self.taken > 0

    def as_json(self) -> dict[str, Any]:
        """Return the row as a JSON object."""
        names = ("target", "operator", "reason", "refused", "taken", "form")
        return {name: getattr(self, name) for name in names}


def counted_as(case: Case, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> list[str]:
    """Return the names of the counters that a test adds to: once for each of its targets."""
    operator, found = str(case.recipe.get("op", "")), dict[str, str]()
    for run, outcome in zip(runs, outcomes, strict=True):
        if isinstance(outcome, Unsupported | Rejected):
            reason = _reason(run.target, outcome.message)
            found[run.target] = f"{REFUSED}{run.target}{_BAR}{operator}{_BAR}{reason}"
        elif operator and isinstance(outcome, Values):
            found.setdefault(run.target, f"{TAKEN}{run.target}{_BAR}{operator}")
    return list(found.values())


@lru_cache(1 << 12)
def _reason(target: str, message: str) -> str:
    """Return the reason in `known.toml`, else the message without what varies from program to program."""
    spec = parse_target(target)
    entry = known(spec.about.name, spec.via).rejection("", message)
    return (normalise(message) if entry is None else entry.reason)[:_REASON_LENGTH].replace(_BAR, " ")


def rows_of(counters: Mapping[str, int]) -> list[RefusalRow]:
    """Return the rows that a campaign has counted, the most frequent first."""
    taken = {
        tuple(name.removeprefix(TAKEN).split(_BAR)): count for name, count in counters.items() if name.startswith(TAKEN)
    }
    rows = []
    for name, count in counters.items():
        if name.startswith(REFUSED):
            target, operator, reason = name.removeprefix(REFUSED).split(_BAR, 2)
            rows.append(RefusalRow(target, operator, reason, count, taken.get((target, operator), 0)))
    return sorted(rows, key=lambda row: (-row.refused, row.operator, row.reason))


def refusals_in(folder: Path) -> list[RefusalRow]:
    """Return the rows of the campaigns in a folder. Raises StoreError, UsageError when nothing was tested."""
    with Store.open(folder, create=False) as store:
        counters = store.counters()
    if not counters.get("tests"):
        raise UsageError(f"the campaign in {folder} has tested nothing yet")
    return rows_of(counters)
