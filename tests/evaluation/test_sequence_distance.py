"""Distances between sequences, against the textbook recurrences."""

from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from evaluation.polyjuice.distance import edit_distance, lcs_difference, lcs_length

words = st.lists(st.sampled_from("abcd"), max_size=12).map(tuple)


@given(words, words)
def test_the_longest_common_subsequence_is_that_of_the_recurrence(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    @cache
    def naive(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return 0
        if one[i - 1] == other[j - 1]:
            return naive(i - 1, j - 1) + 1
        return max(naive(i - 1, j), naive(i, j - 1))

    assert lcs_length(one, other) == naive(len(one), len(other))
    assert lcs_difference(one, other) == len(one) + len(other) - 2 * naive(len(one), len(other))


@given(words, words)
def test_the_edit_distance_is_that_of_the_recurrence(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    @cache
    def naive(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return i + j
        same = naive(i - 1, j - 1) + (one[i - 1] != other[j - 1])
        return min(same, naive(i - 1, j) + 1, naive(i, j - 1) + 1)

    assert edit_distance(one, other) == naive(len(one), len(other))


@given(words, words, words)
def test_edit_distance_is_a_metric(a: tuple[str, ...], b: tuple[str, ...], c: tuple[str, ...]) -> None:
    assert edit_distance(a, b) == edit_distance(b, a)
    assert (edit_distance(a, b) == 0) == (a == b)
    assert edit_distance(a, c) <= edit_distance(a, b) + edit_distance(b, c)


def test_long_sequences_need_no_square_of_memory() -> None:
    one, other = ["a", "b"] * 1500, ["b", "a"] * 1500
    assert lcs_difference(one, other) == 2
    assert edit_distance(one, other) == 2
