"""The interfaces of reduction: a reduction proposes smaller drafts, a draft kind turns cases into drafts and back."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from miscompile.core.case import Case
from miscompile.core.verdict import Evidence

Cost = tuple[int, ...]
"""Costs compare lexicographically; less is simpler."""

D = TypeVar("D")


class Reduction(Protocol[D]):
    """Proposes smaller drafts. The contract:

    - deterministic, and a function of the draft alone: no state, no randomness, no predicate;
    - the boldest candidate first, so that a success saves the most work;
    - lazy: the engine stops the iteration at the first success, and continues with the new draft at the same *place*
      in the list; so after an edit at place k the edits before k should be about the same again;
    - no loop to a fixpoint and no check of validity inside: the engine does both;
    - a candidate may be broken or larger; the engine refuses it for little cost.
    """

    def edits(self, draft: D) -> Iterator[D]:
        """Yield candidates made from `draft`."""
        ...


class DraftKind(Protocol[D]):
    """The conversion of the cases of one kind of program into drafts, which reductions edit, and back.

    A draft is never changed in place.
    """

    def take_apart(self, case: Case, evidence: Evidence) -> D:
        """Return the draft of a case that violates a property as `evidence` says. Raises ModelError for a case that is
        not of this kind, or cannot be edited."""
        ...

    def tidy(self, draft: D) -> D:
        """Return the draft without the parts that nothing needs. Raises MiscompileError for a broken one."""
        ...

    def cost(self, draft: D) -> Cost:
        """Return the cost of a draft."""
        ...

    def digest(self, draft: D) -> str:
        """Return a digest of everything in the draft."""
        ...

    def put_together(self, draft: D, recipe: Mapping[str, Any]) -> Case:
        """Return the case of a draft. Raises MiscompileError for one that breaks the rules of its programs."""
        ...

    def defined(self, draft: D) -> bool:
        """Tell whether the draft's program is well defined: it meets no undefined behaviour on its feeds."""
        ...

    def reductions(self) -> Sequence[Reduction[D]]:
        """Return the standard reductions, in the order in which they are tried."""
        ...
