"""Findings without culprits, until triage takes them.

On a slow compiler a lane hands most violations to triage without a search for culprits, and some bugs are of no pass.
Without culprits little tells a new bug from one that the campaign knows, and most are known. Triage takes those first
that resemble no known bug. The others are taken while known bugs have a small share of the CPU time
(`engine/look_alikes.py`), and stay pending otherwise.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from miscompile.findings.folder import Stored
from miscompile.triage.attribution import SYMPTOM_TEXT
from miscompile.triage.recognition import OperatorCounts, SignedPredicate, resembles
from miscompile.triage.signature import Symptom


def is_unattributed(stored: Stored) -> bool:
    """Tell whether a pending finding waits here. Those that hang do not, because triage takes them last anyway."""
    signature = stored.finding.property.signature
    return signature.kind != "hang" and not signature.culprits and SYMPTOM_TEXT in stored.finding.facts


@dataclass(frozen=True, slots=True)
class _Waiting:
    identifier: str
    target: str
    symptom: Symptom
    operators: OperatorCounts


@dataclass(slots=True)
class Unattributed:
    """The findings that wait, oldest first. At most one is in triage, so that what it teaches decides on the next."""

    _waiting: list[_Waiting] = field(default_factory=list)
    _taken: str = ""

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, stored: Stored) -> None:
        """Let a finding wait, for which `is_unattributed` holds."""
        held, case = stored.finding.property, stored.finding.case
        symptom = Symptom(held.signature.kind, held.signature.stage, str(stored.finding.facts[SYMPTOM_TEXT]))
        one = _Waiting(stored.finding.identifier, held.target, symptom, OperatorCounts(case.program))
        self._waiting.append(one)

    def take(self, known: Collection[SignedPredicate], *, look_alikes: bool) -> str | None:
        """Return the finding that triage takes next; None while it has one, and when none may be taken.

        The first one that resembles none of the `known` bugs comes first, then the first of all if `look_alikes` are
        allowed.
        """
        if self._taken or not self._waiting:
            return None
        unlike = (one for one in self._waiting if not resembles(known, one.target, one.symptom, one.operators))
        chosen = next(unlike, self._waiting[0] if look_alikes else None)
        if chosen is None:
            return None
        self._waiting.remove(chosen)
        self._taken = chosen.identifier
        return chosen.identifier

    def settled(self, identifier: str) -> None:
        """Note that a triage has ended."""
        if identifier == self._taken:
            self._taken = ""
