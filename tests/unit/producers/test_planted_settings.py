"""Values near to those that a motif has: still lawful, still of their type, and seldom the same."""

import random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from miscompile.base.dtypes import DTYPES
from miscompile.core.tensor import tensor
from miscompile.producers.motifs.settings import near, nudged, other_value

SEEDS = st.integers(0, 1 << 32)
PLACES = st.lists(st.integers(-8, 8), min_size=1, max_size=6)


@given(SEEDS, PLACES)
def test_what_is_near_differs_in_one_place_and_stays_between_zero_and_the_farthest(
    seed: int, values: list[int]
) -> None:
    found = near(random.Random(seed), values)
    assert len(found) == len(values)
    assert sum(one != other for one, other in zip(found, values, strict=True)) <= 1
    assert max(map(abs, found)) <= max(map(abs, values))
    if min(values) >= 0:
        assert min(found) >= 0


@given(SEEDS, PLACES)
def test_something_is_changed_whenever_there_is_another_value(seed: int, values: list[int]) -> None:
    assume(len(set(values)) > 1)
    assert near(random.Random(seed), values) != tuple(values)


@given(SEEDS, st.sampled_from(["float32", "float64", "float16", "int8", "int64", "uint8"]), st.data())
def test_a_nudged_tensor_keeps_type_and_shape_and_differs_in_one_element(
    seed: int, dtype: str, data: st.DataObject
) -> None:
    low = 0 if dtype.startswith("u") else -100
    values = data.draw(st.lists(st.integers(low, 100), min_size=1, max_size=6))
    given_one = tensor(np.asarray(values, np.float64 if dtype.startswith("f") else np.int64)[None], dtype)
    found = nudged(random.Random(seed), given_one)
    assert (found.dtype, found.array.shape) == (dtype, given_one.array.shape)
    assert found.array.dtype == given_one.array.dtype
    assert np.count_nonzero(found.array != given_one.array) <= 1
    assert np.abs(found.array).max() <= np.abs(given_one.array).max()


@pytest.mark.parametrize("values", [np.zeros((0, 2), np.float32), np.array([True, False])])
def test_what_has_no_near_value_stays(values: np.ndarray) -> None:
    given_one = tensor(values, values.dtype.name)
    assert nudged(random.Random(0), given_one) is given_one


@given(SEEDS, st.permutations(range(4)))
def test_another_permutation_is_one(seed: int, perm: list[int]) -> None:
    found = other_value(random.Random(seed), "perm", tuple(perm))
    assert found is None or sorted(found) == [0, 1, 2, 3]  # type: ignore[arg-type]


@given(SEEDS, st.sampled_from([0, 1]))
def test_a_flag_is_turned_or_left_out(seed: int, flag: int) -> None:
    assert other_value(random.Random(seed), "keepdims", flag) in (None, 1 - flag)


def test_an_integer_that_is_no_flag_is_at_most_left_out() -> None:
    found = {other_value(random.Random(seed), "to", DTYPES["float32"].code) for seed in range(50)}
    assert found == {None}
