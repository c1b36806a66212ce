"""Distances between graphs, against the textbook recurrences."""

from functools import cache

import pytest
from egraph_models import model_of, shared
from hypothesis import given
from hypothesis import strategies as st

from miscompile.transforms.egraph.distance import (
    distance,
    edit_distance,
    lcs_difference,
    lcs_length,
    mean_uses,
    operators,
)

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


def test_operators_stand_in_the_order_of_dataflow_whatever_that_of_the_nodes() -> None:
    assert operators(shared()) == ("Add", "Add", "Mul", "Sin", "Add", "Neg")
    one = model_of("%a = Neg(%x) %b = Sin(%z) %dead = Abs(%x) %y = Add(%b, %a)")
    other = model_of("%b = Sin(%z) %a = Neg(%x) %y = Add(%b, %a)")
    assert operators(one) == operators(other) == ("Sin", "Neg", "Add")


def test_a_report_counts_what_differs() -> None:
    one = model_of("%a = Neg(%x) %y = Add(%a, %a)")
    other = model_of("%a = Neg(%x) %b = Neg(%x) %c = Abs(%b) %y = Add(%a, %c)")
    found = distance(one, other)
    assert found.operators == (2, 4)
    assert found.kinds == {"Abs": 1, "Neg": 1}
    assert (found.difference, found.edits) == (2, 2)
    assert found.uses == (1.5, 1.0)


@pytest.mark.parametrize(("body", "uses"), [("%y = Neg(%x)", 1.0), ("%a = Neg(%x) %y = Mul(%a, %a)", 1.5)])
def test_sharing_is_the_mean_number_of_uses(body: str, uses: float) -> None:
    assert mean_uses(model_of(body).graph) == uses
