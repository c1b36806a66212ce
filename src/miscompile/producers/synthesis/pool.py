"""The pool of seeds: who gets in, who is drawn, who has to go.

Clean results of synthesis come back as seeds, so that patterns of several passes meet in one graph (OATest, section
3.3). A pool that takes everything drowns in graphs that do the same; here a result gets in when the set of passes that
changed it is one that was not seen before, and seeds that have borne nothing new for long go first.
"""

import random
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from itertools import combinations

from miscompile.producers.synthesis.host import Host

_BARREN = 40
"""Uses in a row without anything new after which a seed has to go when there is no room."""

_LOOKS = 3
"""Seeds that are looked at where one is chosen for its passes."""


@dataclass(slots=True)
class PooledSeed:
    """A seed in the pool, with the passes that changed it, and its uses since it last led to something new."""

    host: Host
    passes: frozenset[str] = frozenset()
    idle: int = 0


@dataclass(slots=True)
class SeedPool:
    """At most `capacity` seeds. Everything depends on the calls alone."""

    capacity: int
    entries: list[PooledSeed] = field(default_factory=list)
    seen: set[frozenset[str]] = field(default_factory=set)
    together: Counter[tuple[str, str]] = field(default_factory=Counter)
    fired: Counter[str] = field(default_factory=Counter)

    def draw(
        self, rng: random.Random, wanted: Iterable[str] = (), opsets: Collection[int] | None = None
    ) -> PooledSeed | None:
        """Draw a seed of one of `opsets` (None: any); None where there is none.

        With `wanted`, passes about to be woken, it is one whose own passes were seen least beside these.
        """
        entries = self.entries if opsets is None else [one for one in self.entries if one.host.opset in opsets]
        if not entries:
            return None
        wanted = tuple(wanted)
        looks = [rng.choice(entries) for _ in range(_LOOKS if wanted else 1)]
        chosen = min(looks, key=lambda entry: self._known(entry.passes, wanted))
        chosen.idle += 1
        return chosen

    def put(self, host: Host, passes: frozenset[str] = frozenset()) -> PooledSeed:
        """Take a seed in, and let another go where there is no room."""
        if len(self.entries) >= self.capacity:
            self._retire()
        entry = PooledSeed(host, passes)
        self.entries.append(entry)
        return entry

    def observe(self, passes: frozenset[str]) -> bool:
        """Take note of the passes that changed a program; tell whether that set of them is new."""
        self.fired.update(passes)
        self.together.update(combinations(sorted(passes), 2))
        fresh = passes not in self.seen
        self.seen.add(passes)
        return fresh

    def _known(self, passes: frozenset[str], wanted: tuple[str, ...]) -> float:
        """Tell how well the combinations are known that `passes` and `wanted` make; nothing to combine is worst."""
        pairs = [(min(one, other), max(one, other)) for one in passes for other in wanted if one != other]
        if not pairs:
            return float("inf")
        return sum(self.together[pair] for pair in pairs) / len(pairs)

    def _retire(self) -> None:
        """Let go the seed that has been idle longest; where all have just been of use, the oldest."""
        idle = max(range(len(self.entries)), key=lambda place: self.entries[place].idle)
        self.entries.pop(idle if self.entries[idle].idle >= _BARREN else 0)
