"""Refusals: the programs that a target does not take, by operator and reason.

A refusal is lawful where `known.toml` lists its message, and no finding. Users see a refusal as a bug all the same if
the target takes the operator otherwise. So a campaign counts both: the table says for each operator how many programs
of it alone were taken, how many were refused, and for which reasons.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from miscompile.core.case import Case
from miscompile.core.outcome import Outcome, Rejected, Unsupported, Values
from miscompile.core.run import Run
from miscompile.targets.reasons import is_lawful, refusal_reason

REFUSED, TAKEN = "refused by ", "taken by "
"""Begin the counters of refused and of taken programs; target, operator and reason follow, between bars."""

_BAR = " | "


@dataclass(frozen=True, slots=True)
class RefusalRow:
    """How often `target` refused programs for `reason`.

    They consist of `operator` alone, of which it took `taken` programs; an empty operator stands for graphs of several,
    for which nothing is counted that was taken. `lawful` tells whether `known.toml` says that the reason is lawful in
    every form of a call.
    """

    target: str
    operator: str
    reason: str
    refused: int
    taken: int
    lawful: bool = False

    @property
    def form(self) -> bool:
        """Whether the target takes the operator in other forms, and nothing says that this reason is lawful."""
        return self.taken > 0 and not self.lawful

    @property
    def verdict(self) -> str:
        """Why the refusal counts as lawful, or that it depends on the form."""
        if self.lawful:
            return "listed as lawful"
        if not self.operator:
            return "several operators"
        return "depends on the form" if self.form else "taken in no form"

    def as_json(self) -> dict[str, Any]:
        """Return the row as a JSON object."""
        names = ("target", "operator", "reason", "refused", "taken", "form", "verdict")
        return {name: getattr(self, name) for name in names}


def counted_as(case: Case, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> list[str]:
    """Return the names of the counters that a test adds to: once for each of its targets."""
    operator, found = str(case.recipe.get("op", "")), dict[str, str]()
    for run, outcome in zip(runs, outcomes, strict=True):
        if isinstance(outcome, Unsupported | Rejected):
            reason = refusal_reason(run.target, outcome)
            found[run.target] = f"{REFUSED}{run.target}{_BAR}{operator}{_BAR}{reason}"
        elif operator and isinstance(outcome, Values):
            found.setdefault(run.target, f"{TAKEN}{run.target}{_BAR}{operator}")
    return list(found.values())


def rows_of(counters: Mapping[str, int]) -> list[RefusalRow]:
    """Return the rows that a campaign has counted, the most frequent first."""
    taken = {
        tuple(name.removeprefix(TAKEN).split(_BAR)): count for name, count in counters.items() if name.startswith(TAKEN)
    }
    rows = []
    for name, count in counters.items():
        if name.startswith(REFUSED):
            target, operator, reason = name.removeprefix(REFUSED).split(_BAR, 2)
            known_taken = taken.get((target, operator), 0)
            rows.append(RefusalRow(target, operator, reason, count, known_taken, is_lawful(target, reason)))
    return sorted(rows, key=lambda row: (-row.refused, row.operator, row.reason))
