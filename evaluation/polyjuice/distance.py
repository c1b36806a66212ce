"""Distances between sequences, as POLYJUICE compares the transformations that a compiler applies to two graphs.

Section 6.3 counts the elements outside a longest common subsequence, as `diff` does, and Levenshtein's edit distance.
"""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray


def lcs_difference(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """Return how many elements of both sequences lie outside a longest common subsequence of theirs."""
    return len(one) + len(other) - 2 * lcs_length(one, other)


def lcs_length(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """Return the length of a longest common subsequence, in memory linear in the length of `other`.

    Row by row: a cell is one more than the cell diagonally before it where elements agree, else the greatest so far.
    """
    left, right = _numbers(one, other)
    row = np.zeros(len(right) + 1, np.int64)
    for word in left:
        reached = np.where(right == word, row[:-1] + 1, row[1:])
        row[1:] = np.maximum.accumulate(reached)
    return int(row[-1])


def edit_distance(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """Return the least number of insertions, deletions and replacements that make one sequence the other.

    Memory is linear in the length of `other`. Insertions along a row become a running minimum when each cell is taken
    relative to its position.
    """
    left, right = _numbers(one, other)
    places = np.arange(len(right) + 1)
    row = places.copy()
    for count, word in enumerate(left, 1):
        reached = np.empty_like(row)
        reached[0] = count
        reached[1:] = np.minimum(row[1:] + 1, row[:-1] + (right != word))
        row = np.minimum.accumulate(reached - places) + places
    return int(row[-1])


def _numbers(one: Sequence[Hashable], other: Sequence[Hashable]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    known: dict[Hashable, int] = {}
    left, right = [[known.setdefault(word, len(known)) for word in words] for words in (one, other)]
    return np.array(left, np.int64), np.array(right, np.int64)
