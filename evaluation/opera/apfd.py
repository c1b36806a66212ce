"""How good an order of tests is, given the bugs that each test reveals: APFD, RAUC-k and the time to each bug."""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import accumulate

Bugs = Sequence[Sequence[Hashable]]
"""For each test, in the order in which they run, the bugs that it reveals."""

SHARES = (0.25, 0.5, 0.75, 1.0)
"""The parts of the tests after which RAUC-k is taken, as on OPERA's home page."""


def first_places(bugs: Bugs) -> dict[Hashable, int]:
    """Return, for each bug, the place of the first test that reveals it, counted from 1; by rising place."""
    found: dict[Hashable, int] = {}
    for place, revealed in enumerate(bugs, 1):
        for bug in revealed:
            found.setdefault(bug, place)
    return found


def apfd(bugs: Bugs) -> float:
    """Return the average percentage of faults detected: 1 - sum(p_i) / (n m) + 1 / (2 n) (OPERA, formula 1).

    n is the number of tests, m that of bugs, p_i the place of the first test that reveals bug i. The value lies above 0
    and below 1. Raises ValueError when there is no bug.
    """
    places = first_places(bugs)
    if not places:
        raise ValueError("without bugs, no order is better than another")
    count = len(bugs)
    return 1 - sum(places.values()) / (count * len(places)) + 1 / (2 * count)


def rauc(bugs: Bugs, share: float = 1.0) -> float:
    """Return RAUC-k: the area under the curve of bugs found over tests run, relative to that of the ideal order.

    Only the first tests run, those that are `share` of all (at least one; the number is rounded up): the measure of an
    order when there is no time for all tests. The area is the sum, over these tests, of the bugs found when each has
    ended. The ideal order is that of someone who knows all bugs beforehand; when tests reveal several bugs each it is
    built greedily, which is exact when no test reveals more than one. The value lies between 0 and 1; it is 1 for an
    order as good as the ideal, 0 when no bug is found in time. See OPERA's home page, section on supplementary results.
    Raises ValueError when there is no bug.
    """
    places = first_places(bugs)
    if not places:
        raise ValueError("without bugs, no order is better than another")
    if not 0 < share <= 1:
        raise ValueError(f"{share} is no share of the tests")
    end = max(1, math.ceil(share * len(bugs) - 1e-9))
    return min(1.0, _area(places.values(), end) / _area(_ideal(bugs), end))


def _area(places: Iterable[int], end: int) -> int:
    return sum(end - place + 1 for place in places if place <= end)


def _ideal(bugs: Bugs) -> list[int]:
    """Return the places at which bugs are found when the test that reveals the most new ones always comes next."""
    sets = list(dict.fromkeys(frozenset(revealed) for revealed in bugs if revealed))
    left = set(first_places(bugs))
    found: list[int] = []
    place = 0
    while left:
        best = max(sets, key=lambda one: len(one & left))
        place += 1
        found.extend([place] * len(best & left))
        left -= best
    return found


def times(bugs: Bugs, seconds: Sequence[float], before: float = 0.0) -> Mapping[Hashable, float]:
    """Return, for each bug, the seconds until the first test that reveals it has ended, in the order of finding.

    `seconds` is what each test takes, `before` what the ranking itself took; the paper counts both.
    """
    if len(seconds) != len(bugs):
        raise ValueError("there must be one duration a test")
    ends = list(accumulate(seconds, initial=before))
    return {bug: ends[place] for bug, place in first_places(bugs).items()}
