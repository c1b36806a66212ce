"""Findings: violated properties that are worth a report."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from miscompile.core.case import Case
from miscompile.core.verdict import FindingKind

_SWITCHED = "non-default builds"


@dataclass(frozen=True, slots=True)
class Signature:
    """The identity of a bug: two findings with equal signatures count as the same bug.

    `kind` of finding, `stage` of the failure (`""` for wrong results, the class of the element for those on special
    values, what costs too much for those on cost), `culprits`: the passes that must be on, sorted; `text`: the
    normalised message, or the canonical form of the reduced graph when there is none. With culprits, errors and refused
    forms alone keep their message: a pass that makes an invalid graph in one place and asks for a missing kernel in
    another has two bugs. The operators of another bug of the same passes come first. The text of a bug that no default
    build shows ends with words of its own, because it must not stand for a bug that users meet.
    """

    target: str
    kind: FindingKind
    stage: str
    culprits: tuple[str, ...]
    text: str

    @property
    def is_switched(self) -> bool:
        """Tell whether this is a bug that no default build of the compiler shows."""
        return self.text.endswith(_SWITCHED)

    def switched(self) -> "Signature":
        """Return the signature of the same bug where no default build of the compiler shows it."""
        if self.is_switched or not (self.culprits or self.text):
            return self
        return replace(self, text=f"{self.text} in {_SWITCHED}" if self.text else _SWITCHED)

    def __str__(self) -> str:
        apart = f" in {self.text}" if self.culprits and self.text else ""
        where = "+".join(self.culprits) + apart or self.text or "unattributed"
        return f"{self.target}:{self.kind}{'@' + self.stage if self.stage else ''}:{where}"


@dataclass(frozen=True, slots=True)
class Property:
    """The violated property of a finding; deduplication, reduction, bisection and scripts all check it.

    `oracle` and `target` are specs; the builds that were compared are among the finding's facts.
    """

    oracle: str
    target: str
    signature: Signature


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding with the case that shows it; `facts` holds JSON values for store and reports."""

    identifier: str
    property: Property
    case: Case
    message: str
    facts: Mapping[str, Any] = field(default_factory=dict)
