"""The three coverages of HIRFUZZ: operator x dtype, operator x output shape, operator x operator edges.

They serve as a gate (a node enters only if it adds coverage, Algorithm 1), as a steer (operator and dtype that were
used least are preferred), and as a metric (the diversity score counts the items). The paper's extension of the third,
paths of three operators, counts for callers that pass paths.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from miscompile.ops.spec import Shape

Path = tuple[str, str, str]
"""Three operators, each using a result of the one before it."""


@dataclass(slots=True)
class Coverage:
    """The coverage of one producer so far."""

    dtypes: dict[tuple[str, str], int] = field(default_factory=dict)
    shapes: set[tuple[str, Shape]] = field(default_factory=set)
    edges: set[tuple[str, str]] = field(default_factory=set)
    paths: set[Path] = field(default_factory=set)
    refused: dict[tuple[str, str], int] = field(default_factory=dict)
    """Failed insertions by operator and dtype, so that a pair that mostly fails does not stay the least used for ever.
    """

    turns: dict[tuple[str, str], int] = field(default_factory=dict)
    """Nodes and refusals together."""

    @property
    def score(self) -> int:
        """Diversity score: the number of covered items."""
        return len(self.dtypes) + len(self.shapes) + len(self.edges) + len(self.paths)

    def fresh(self, op: str, dtype: str, shape: Shape, parents: Iterable[str], paths: Iterable[Path] = ()) -> int:
        """Return how many of the coverages a node would increase; `paths` are those that end at it."""
        return (
            ((op, dtype) not in self.dtypes)
            + ((op, shape) not in self.shapes)
            + any((parent, op) not in self.edges for parent in parents if parent)
            + any(path not in self.paths for path in paths)
        )

    def add(self, op: str, dtype: str, shape: Shape, parents: Iterable[str], paths: Iterable[Path] = ()) -> None:
        """Take a node into account, and the `paths` that end at it."""
        pair = (op, dtype)
        self.dtypes[pair] = self.dtypes.get(pair, 0) + 1
        self.turns[pair] = self.turns.get(pair, 0) + 1
        self.shapes.add((op, shape))
        for parent in parents:
            if parent:
                self.edges.add((parent, op))
        self.paths.update(paths)

    def refuse(self, op: str, dtype: str) -> None:
        """Record a failed insertion: it adds no coverage, but counts as a use of the pair."""
        pair = (op, dtype)
        self.refused[pair] = self.refused.get(pair, 0) + 1
        self.turns[pair] = self.turns.get(pair, 0) + 1

    def choose(self, rng: random.Random, pairs: Sequence[tuple[str, str]], looks: int = 2) -> tuple[str, str]:
        """Draw `looks` of the (operator, dtype) pairs and return the one with the fewest attempts so far."""
        best = pairs[int(rng.random() * len(pairs))]
        for _ in range(looks - 1):
            pair = pairs[int(rng.random() * len(pairs))]
            if self.turns.get(pair, 0) < self.turns.get(best, 0):
                best = pair
        return best
