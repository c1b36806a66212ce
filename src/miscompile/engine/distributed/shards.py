"""The shards of a campaign: which lanes are given out, done, or to be done again.

A lane is a function of the campaign's seed, its session and the lane's number. A shard is a range of lanes, so it is
the same work on whichever node it runs, and a shard whose node died is simply given out again.
"""

from bisect import insort
from collections import Counter
from dataclasses import dataclass

SHARD_SECONDS = 600.0
"""Length of a shard of a campaign that is limited by time: long beside its start, short beside what a death costs."""

LANE_TESTS = 2000
"""Tests of one lane of a campaign that is limited by tests, unless its user divides them otherwise."""

LEAST_SECONDS = 5.0
"""A shorter shard is not worth its start."""

MOST_ATTEMPTS = 4
"""Times that a lane is given out; the node of one that never ends may die of it."""


@dataclass(frozen=True, slots=True)
class Shard:
    """The lanes from `first` to `first + lanes - 1`, for at most `seconds` (None: until their tests are done)."""

    first: int
    lanes: int
    seconds: float | None

    @property
    def numbers(self) -> range:
        """The numbers of its lanes."""
        return range(self.first, self.first + self.lanes)


class ShardBook:
    """The account of the shards of one session.

    `lanes` is the number of lanes of a campaign that is limited by tests, None for one that goes on until `seconds`
    (None: for ever) are over.
    """

    def __init__(self, lanes: int | None, seconds: float | None) -> None:
        self._lanes, self._seconds = lanes, seconds
        self._following = 0
        self._returned: list[int] = []
        self._attempts: Counter[int] = Counter()

    def is_over(self, elapsed: float) -> bool:
        """Tell whether no shard will be given out `elapsed` seconds after the start, unless one is given back."""
        left = self._left(elapsed)
        if left is not None and left < min(LEAST_SECONDS, self._seconds or 0.0):
            return True
        return self._lanes is not None and self._following >= self._lanes and not self._returned

    def take(self, lanes: int, elapsed: float) -> Shard | None:
        """Give out a shard of at most `lanes` lanes, `elapsed` seconds after the start; None when there is none."""
        if self.is_over(elapsed):
            return None
        first = self._returned[0] if self._returned else self._following
        count = 1
        while count < lanes and self._is_waiting(first + count):
            count += 1
        shard = Shard(first, count, self._seconds_of(elapsed))
        self._attempts.update(shard.numbers)
        self._returned = [lane for lane in self._returned if lane not in shard.numbers]
        self._following = max(self._following, first + count)
        return shard

    def give_back(self, shard: Shard) -> tuple[int, ...]:
        """Take back a shard that was not completed; return its lanes that are given up after too many attempts."""
        for lane in shard.numbers:
            if self._attempts[lane] < MOST_ATTEMPTS:
                insort(self._returned, lane)
        return tuple(lane for lane in shard.numbers if self._attempts[lane] >= MOST_ATTEMPTS)

    def _is_waiting(self, lane: int) -> bool:
        return lane in self._returned or (lane >= self._following and (self._lanes is None or lane < self._lanes))

    def _left(self, elapsed: float) -> float | None:
        return None if self._seconds is None else self._seconds - elapsed

    def _seconds_of(self, elapsed: float) -> float | None:
        bound = None if self._lanes is not None else SHARD_SECONDS
        return min((limit for limit in (self._left(elapsed), bound) if limit is not None), default=None)
