"""Pairs of classes that instances of one operator cover, those that only refused ones have, and those never tried."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from miscompile.instances.classes import ClassPair, Item

_HOPELESS = 4
"""An item that this many instances in a row had when the library refused them, and no valid one, counts no longer."""

_FOLDED = ("operands", "results")
"""The factors of constant folding: which operands are constants, and which results are named."""
_FOLDED_WEIGHT = 12
"""Pairs for which one of constants with other results counts: about as many as a new element type brings."""

NOT_TRIED = "not tried: a limit was reached, or others went first"
"""Why a class has neither a kept nor a refused instance."""


@dataclass(slots=True)
class PairCoverage:
    """The pairs of one operator.

    `tested` are those of the library's tests, `added` those of kept neighbours that tests lack. `refusals` counts the
    reasons of refused neighbours by class, `drawn` are the pairs of all neighbours that were generated, tried or not.
    `classes` holds the class of each factor of every instance that the library runs, by digest.
    """

    api: str
    tested: set[ClassPair] = field(default_factory=set)
    added: set[ClassPair] = field(default_factory=set)
    refused: set[ClassPair] = field(default_factory=set)
    drawn: set[ClassPair] = field(default_factory=set)
    refusals: dict[Item, Counter[str]] = field(default_factory=dict)
    classes: dict[str, Mapping[str, str]] = field(default_factory=dict)
    tests: int = 0
    kept: int = 0
    tried: int = 0

    def gain(self, pairs: Iterable[ClassPair]) -> int:
        """Return how many pairs no kept instance has, without those of classes that the library seems to refuse.

        A pair of the factors of constant folding counts several times, or new types would always come first.
        """
        fresh = (pair for pair in pairs if pair not in self.tested and pair not in self.added)
        return sum(_weight(pair) for pair in fresh if not (self._hopeless(pair[0]) or self._hopeless(pair[1])))

    def _hopeless(self, item: Item) -> bool:
        counts = self.refusals.get(item)
        return counts is not None and counts.total() >= _HOPELESS and not self._has(item)

    def _has(self, item: Item) -> bool:
        return (item, item) in self.tested or (item, item) in self.added

    def test(self, pairs: frozenset[ClassPair]) -> None:
        """Count an instance of the library's tests."""
        self.tests += 1
        self.tested |= pairs

    def keep(self, pairs: frozenset[ClassPair]) -> None:
        """Count a neighbour that the library runs."""
        self.tried += 1
        self.kept += 1
        self.added |= pairs - self.tested

    def refuse(self, pairs: frozenset[ClassPair], reason: str) -> None:
        """Count a neighbour that was refused."""
        self.tried += 1
        self.refused |= pairs
        for first, second in pairs:
            if first == second and not self._has(first):
                self.refusals.setdefault(first, Counter())[reason] += 1

    def as_json(self) -> dict[str, Any]:
        """Return the row of the operator, with each class that no instance has and why."""
        covered = self.tested | self.added
        refused = self.refused - covered
        untried = self.drawn - covered - refused
        known = covered | refused | untried
        items = {first for first, second in known if first == second}
        factors = Counter(factor for factor, _ in items)
        everything = (sum(factors.values()) ** 2 - sum(count**2 for count in factors.values())) // 2 + len(items)
        return {
            "operator": self.api,
            "tests": self.tests,
            "kept": self.kept,
            "refused": self.tried - self.kept,
            "pairs": {
                "tests": len(self.tested),
                "neighbours": len(self.added),
                "refused": len(refused),
                "not tried": len(untried),
                "not generated": everything - len(known),
            },
            "missing": [self._missing(item) for item in sorted(items) if not self._has(item)],
        }

    def _missing(self, item: Item) -> dict[str, str]:
        counts = self.refusals.get(item)
        why = counts.most_common(1)[0][0] if counts else NOT_TRIED
        return {"factor": item[0], "class": item[1], "why": why}


def _weight(pair: ClassPair) -> int:
    (factor, operands), (other, _) = pair
    return _FOLDED_WEIGHT if (factor, other) == _FOLDED and "constant" in operands else 1
