"""The pool of seeds: admission, selection and eviction.

Clean results of synthesis become seeds again, so that patterns of several passes interact in one graph (OATest, section
3.3). A pool that admits every result fills up with similar graphs. Here a result is admitted when the set of passes
that changed it is new, and seeds that led to nothing new for the longest time are evicted first.
"""

import random
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from itertools import combinations

from miscompile.producers.synthesis.host import Host

_BARREN = 40
"""Uses in a row without a new set of passes after which a seed is evicted when the pool is full."""

_LOOKS = 3
"""Number of seeds compared when one is chosen for its passes."""


@dataclass(slots=True)
class PooledSeed:
    """A seed in the pool, with the passes that changed it, and its uses since it last led to something new."""

    host: Host
    passes: frozenset[str] = frozenset()
    idle: int = 0


@dataclass(slots=True)
class SeedPool:
    """At most `capacity` seeds. The state depends on the sequence of calls alone."""

    capacity: int
    entries: list[PooledSeed] = field(default_factory=list)
    seen: set[frozenset[str]] = field(default_factory=set)
    together: Counter[tuple[str, str]] = field(default_factory=Counter)
    fired: Counter[str] = field(default_factory=Counter)

    def draw(
        self, rng: random.Random, wanted: Iterable[str] = (), opsets: Collection[int] | None = None
    ) -> PooledSeed | None:
        """Draw a seed of one of `opsets` (None: any); None where there is none.

        With `wanted`, passes that the pattern will trigger, it is one whose own passes were observed least together
        with these.
        """
        entries = self.entries
        if opsets is not None:
            allowed = frozenset(opsets)
            entries = [one for one in entries if one.host.opset in allowed]
        if not entries:
            return None
        wanted = tuple(wanted)
        looks = [rng.choice(entries) for _ in range(_LOOKS if wanted else 1)]
        chosen = min(looks, key=lambda entry: self._known(entry.passes, wanted))
        chosen.idle += 1
        return chosen

    def put(self, host: Host, passes: frozenset[str] = frozenset()) -> PooledSeed:
        """Add a seed, and evict another if the pool is full."""
        if len(self.entries) >= self.capacity:
            self._retire()
        entry = PooledSeed(host, passes)
        self.entries.append(entry)
        return entry

    def observe(self, passes: frozenset[str]) -> bool:
        """Record the passes that changed a program; tell whether that set of them is new."""
        self.fired.update(passes)
        self.together.update(combinations(sorted(passes), 2))
        fresh = passes not in self.seen
        self.seen.add(passes)
        return fresh

    def _known(self, passes: frozenset[str], wanted: tuple[str, ...]) -> float:
        """Return how often the pairs of `passes` and `wanted` were observed on average; infinity without a pair."""
        pairs = [(min(one, other), max(one, other)) for one in passes for other in wanted if one != other]
        if not pairs:
            return float("inf")
        return sum(self.together[pair] for pair in pairs) / len(pairs)

    def _retire(self) -> None:
        """Evict the seed with the most idle uses, or the oldest if none reaches the limit."""
        idle = max(range(len(self.entries)), key=lambda place: self.entries[place].idle)
        self.entries.pop(idle if self.entries[idle].idle >= _BARREN else 0)
