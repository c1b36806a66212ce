"""The triaged findings of a campaign, as the triage of a further one sees them: is that one a bug of its own?"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from miscompile.base.errors import StoreError
from miscompile.core.case import Case
from miscompile.core.finding import Signature
from miscompile.core.outcome import Outcome
from miscompile.core.verdict import Evidence
from miscompile.findings.folder import REPEATED, Stored
from miscompile.findings.store import Record, Store
from miscompile.triage.predicate import told_apart, underlies
from miscompile.triage.recognition import recognised, signed_predicates_of


@dataclass(frozen=True, slots=True)
class TriagedFindings:
    """The findings in the store at `out`, read anew at each question; none while its index cannot be read."""

    out: Path

    def recognise(
        self, case: Case, evidence: Evidence, outcome: Outcome | None, identifier: str = ""
    ) -> Signature | None:
        """Return the signature of the finding whose predicate explains a violation; None for a new violation.

        The lane that reported the violation did not know that finding yet. `outcome` is that of the faulty run, and
        `identifier` the violation's own finding, which does not count.
        """
        with suppress(StoreError), Store.open(self.out, create=False) as store:
            others = _triaged(store, lambda one: one.kind == evidence.kind and one.identifier != identifier)
            for stored in others:
                bug = recognised(signed_predicates_of(stored), case, evidence, outcome)
                if bug is not None:
                    return bug.signature
        return None

    def duplicated(self, told: Stored) -> Signature | None:
        """Return the signature of the finding that the store shall merge a reduced one into; None for a new bug.

        `told` has its final signature and its predicate.
        """
        owner = None
        with suppress(StoreError), Store.open(self.out, create=False) as store:
            owner = store.with_signature(told.finding.property.signature)
            apart = None if owner is None else told_apart(told, owner)
            if apart is not None:
                owner = store.with_signature(apart)
            if owner is None or owner.finding.identifier == told.finding.identifier:
                owner = _cause(store, told)
        if owner is None or owner.status not in REPEATED:
            return None
        return owner.finding.property.signature


def _cause(store: Store, told: Stored) -> Stored | None:
    """Return a triaged finding that a violation with several culprits follows from."""
    if len(told.finding.property.signature.culprits) < 2:
        return None
    others = _triaged(store, lambda record: record.identifier != told.finding.identifier)
    return next((known for known in others if underlies(known, told)), None)


def _triaged(store: Store, wanted: Callable[[Record], bool]) -> Iterator[Stored]:
    """Yield the triaged findings with a wanted row; a damaged one is left out, because it is named elsewhere."""
    for record in store.findings():
        if record.status in REPEATED and wanted(record):
            with suppress(StoreError):
                yield store.load(record.identifier)
