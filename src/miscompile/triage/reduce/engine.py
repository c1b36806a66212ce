"""The reduction engine: the one object that checks whether a candidate still shows the bug.

Reductions only propose candidates. The engine tidies a candidate, skips it when it was seen before or is not smaller,
checks that it is a valid and well-defined program, applies the oracle, and keeps the best one. `Reduction` holds the
contract of reductions, and `DraftKind` that of the conversion between cases and drafts.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from miscompile.base.errors import MiscompileError, ModelError
from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.core.examination import Examination, examine
from miscompile.core.outcome import Outcome, Values
from miscompile.core.ports import Oracle, Runner
from miscompile.core.verdict import Evidence, Violated
from miscompile.oracles.compare import finite
from miscompile.triage.reduce.reduction import Cost, DraftKind, Reduction
from miscompile.triage.signature import Symptom, similar, symptom_of

_MOST_SLIPPAGES = 8


D = TypeVar("D")


def never() -> bool:
    """Return False: the deadline of a search without time limit."""
    return False


def any_case(case: Case) -> bool:
    """Return True: the default demand on reduced cases."""
    del case
    return True


def ignore(case: Case) -> None:
    """Do nothing with a smaller case."""
    del case


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of a search: at most `tries` examinations, and until `expired()` returns True."""

    tries: int = 2000
    expired: Callable[[], bool] = never


@dataclass(frozen=True, slots=True)
class Slippage:
    """Another violation that the reduction met: a finding of its own, still to be triaged."""

    case: Case
    verdict: Violated
    outcome: Outcome | None


@dataclass(frozen=True, slots=True)
class Reduced:
    """The smallest case found, with its violation and the faulty run's outcome.

    `steps` names the reductions that helped, in order; `complete` is False when the budget ended the search;
    `defined` is False when the original case has undefined behaviour: it is no finding, and is not reduced.
    """

    case: Case
    evidence: Evidence
    outcome: Outcome | None
    slippages: tuple[Slippage, ...]
    steps: tuple[str, ...]
    tries: int
    complete: bool
    defined: bool


def reduce_case(
    case: Case,
    oracle: Oracle,
    runner: Runner,
    rng: random.Random,
    kind: DraftKind[D],
    *,
    budget: Budget | None = None,
    reductions: Sequence[Reduction[D]] | None = None,
    admits: Callable[[Case], bool] = any_case,
    on_smaller: Callable[[Case], None] = ignore,
) -> Reduced | None:
    """Return the smallest case found that violates `oracle` with the symptom of `case`; None if `case` does not.

    To keep the attribution, pass the oracle that `bisect.only` makes. `kind` converts such cases to drafts
    (`GraphDrafts`, `InvalidDrafts`, `InstanceDrafts`). Without `reductions` the kind's own are used; their results
    must also satisfy `admits`, which is called last. `on_smaller` gets each case that is adopted. A case that
    `kind` cannot convert is returned unchanged. Deterministic for a given `rng`.
    """
    search = Search(oracle, runner, rng.getrandbits(64), kind, budget or Budget(), admits, on_smaller)
    if not search.start(case):
        return None
    if search.best is not None and search.defined:
        search.run(kind.reductions() if reductions is None else reductions)
    return search.result()


class Search(Generic[D]):
    """Owns the predicate. Use `reduce_case`; the class is public for authors of reductions."""

    def __init__(
        self,
        oracle: Oracle,
        runner: Runner,
        seed: int,
        kind: DraftKind[D],
        budget: Budget,
        admits: Callable[[Case], bool] = any_case,
        on_smaller: Callable[[Case], None] = ignore,
    ) -> None:
        self._oracle, self._runner, self._seed, self._kind, self._budget = oracle, runner, seed, kind, budget
        self._admits = admits
        self._on_smaller = on_smaller
        self._seen: set[str] = set()
        self._slippages: dict[Symptom, Slippage] = {}
        self._steps: list[str] = []
        self._tries = 0
        self._complete = True
        self.defined = True
        self.best: D | None = None

    def start(self, case: Case) -> bool:
        """Examine the original case; return False when it shows no violation."""
        examination = self._examine(case)
        if not isinstance(examination.verdict, Violated):
            return False
        evidence = examination.verdict.evidence
        self._case, self._evidence, self._outcome = case, evidence, examination.faulty
        self._wanted = symptom_of(evidence, examination.faulty)
        self._finite = _finite(examination)
        try:
            draft = self._kind.take_apart(case, evidence)
        except ModelError:
            return True
        self.best, self._cost = draft, self._kind.cost(draft)
        self.defined = self._kind.defined(draft)
        if self.defined:
            self.offer(draft)
        return True

    def run(self, reductions: Sequence[Reduction[D]]) -> None:
        """Apply the reductions in rounds until a whole round changes nothing, or the budget is spent."""
        before: Cost | None = None
        while before != self._cost and not self._spent():
            before = self._cost
            for reduction in reductions:
                self._exhaust(reduction)

    def offer(self, draft: D) -> bool:
        """Adopt `draft` if it is new, smaller, valid, well defined and shows the same violation.

        Return whether it did.
        """
        try:
            small = self._kind.tidy(draft)
            cost = self._kind.cost(small)
            if cost >= self._cost or self._known(small):
                return False
            case = self._kind.put_together(small, self._case.recipe)
        except MiscompileError:
            return False  # broken candidates are expected, and are not run
        examination = self._examine(case)
        if not isinstance(examination.verdict, Violated):
            return False
        evidence = examination.verdict.evidence
        symptom = symptom_of(evidence, examination.faulty)
        if not (similar(symptom, self._wanted) and self._blames_the_same(evidence)):
            self._keep_slippage(small, Slippage(case, examination.verdict, examination.faulty), symptom)
            return False
        if self._finite and not _finite(examination):
            return False  # a reader would take the bug for one of values that are not finite
        if not self._kind.defined(small) or not self._admits(case):
            return False
        self.best, self._cost = small, cost
        self._case, self._evidence, self._outcome = case, evidence, examination.faulty
        self._on_smaller(case)
        return True

    def result(self) -> Reduced:
        """Return the best case so far."""
        return Reduced(
            self._case,
            self._evidence,
            self._outcome,
            tuple(self._slippages.values()),
            tuple(self._steps),
            self._tries,
            self._complete,
            self.defined,
        )

    def _exhaust(self, reduction: Reduction[D]) -> None:
        """Offer the reduction's candidates until none helps.

        After a success continue at the same place, not at zero.
        """
        place: int | None = 0
        while place is not None and self.best is not None:
            start, place = place, self._first_success(reduction, place)
            if place is not None:
                # A reduction that wraps another one is recorded under the name of that.
                self._steps.append(type(getattr(reduction, "inner", reduction)).__name__)
            elif start > 0 and not self._spent():
                place = 0

    def _first_success(self, reduction: Reduction[D], start: int) -> int | None:
        assert self.best is not None
        for place, candidate in enumerate(reduction.edits(self.best)):
            if place < start:
                continue
            if self._spent():
                return None
            if self.offer(candidate):
                return place
        return None

    def _examine(self, case: Case) -> Examination:
        self._tries += 1
        return examine(case, self._oracle, self._runner, stream(self._seed, "reduce"))

    def _known(self, draft: D) -> bool:
        digest = self._kind.digest(draft)
        if digest in self._seen:
            return True
        self._seen.add(digest)
        return False

    def _blames_the_same(self, evidence: Evidence) -> bool:
        """Tell whether the same build is at fault, and has a reference build if it had one at first."""
        old = self._evidence
        return evidence.faulty.build == old.faulty.build and (evidence.reference is None) == (old.reference is None)

    def _keep_slippage(self, draft: D, slippage: Slippage, symptom: Symptom) -> None:
        """Keep the first slippage of each symptom; an error of both builds mostly comes from a broken candidate."""
        ours = slippage.verdict.evidence.kind == "exception" and slippage.verdict.evidence.reference is None
        if (
            ours
            or symptom in self._slippages
            or len(self._slippages) >= _MOST_SLIPPAGES
            or similar(symptom, self._wanted)
        ):
            return
        if self._kind.defined(draft):
            self._slippages[symptom] = slippage

    def _spent(self) -> bool:
        if self._tries >= self._budget.tries or self._budget.expired():
            self._complete = False
        return not self._complete


def _finite(seen: Examination) -> bool:
    """Tell whether no result that is known to be right contains NaN or infinity."""
    return not isinstance(seen.reference, Values) or finite(seen.reference)
