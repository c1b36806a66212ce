"""What a reduction is, and what its author must keep."""

from collections.abc import Iterator
from typing import Protocol

from miscompile.triage.reduce.draft import Draft


class Reduction(Protocol):
    """Proposes smaller drafts. The contract:

    - deterministic, and a function of the draft alone: no state, no randomness, no predicate;
    - the boldest candidate first, so that a success saves the most work;
    - lazy: the engine stops listening at the first success, and asks again about the new draft from the same
      *place* in the list; so after an edit at place k the edits before k should be about the same ones again;
    - no loop to a fixpoint and no check of validity inside: the engine does both;
    - a candidate may be broken or larger; the engine refuses it for little cost.
    """

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield candidates made from `draft`."""
        ...
