"""The share of a lane's time that it spends on the search for culprits.

A search builds the program some twenty times. On a compiler that takes a second for a build, a few violations could
otherwise keep a lane from testing for minutes, and most of them show one bug.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from miscompile.engine.look_alikes import affordable

SHARE = 0.15
"""Share of the CPU time of a lane's tests that its searches may take."""

HEADSTART_US = 20_000_000
"""CPU time, in microseconds, that searches may take beyond their share, so that the first ones do not wait."""

MOST_WAITING = 16
"""Violations that wait for their search at most."""

Waiting = TypeVar("Waiting")


@dataclass(slots=True)
class Searches(Generic[Waiting]):
    """The violations whose search is postponed, oldest first, and the CPU time of tests and searches so far.

    `known_us` is the part of it that went into known bugs. With `limited` False no search is postponed, so that a lane
    repeats itself.
    """

    limited: bool
    tested_us: int = 0
    searched_us: int = 0
    known_us: int = 0
    waiting: deque[Waiting] = field(default_factory=deque)

    @property
    def allowed(self) -> bool:
        """Tell whether the next search may begin now."""
        return not self.limited or self.searched_us <= HEADSTART_US + SHARE * self.tested_us

    @property
    def may_look(self) -> bool:
        """Tell whether a violation that resembles a known bug may be searched at all."""
        counters = {"test_us": self.tested_us + self.searched_us, "known_us": self.known_us}
        return not self.limited or affordable(counters)

    def postpone(self, one: Waiting) -> Waiting | None:
        """Let a violation wait; return the oldest one, which must do without a search, when too many wait."""
        self.waiting.append(one)
        return self.waiting.popleft() if len(self.waiting) > MOST_WAITING else None

    def due(self) -> Waiting | None:
        """Return the violation whose search may begin now, and no longer let it wait; None when there is none."""
        return self.waiting.popleft() if self.waiting and self.allowed else None
