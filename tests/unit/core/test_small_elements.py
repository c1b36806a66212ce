"""Elements of fewer than 16 bits: every word stands for the number that ml_dtypes gives it, and back."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from miscompile.base.dtypes import DTYPES, SMALL, SMALL_FLOATS, SMALL_INTEGERS
from miscompile.core.small import decoded, encoded, smallest, table
from miscompile.core.tensor import Tensor, tensor

THEIRS = {
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2,
    "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float4e2m1": ml_dtypes.float4_e2m1fn,
}


@pytest.mark.parametrize("dtype", SMALL_FLOATS)
def test_every_word_is_the_number_that_ml_dtypes_says(dtype: str) -> None:
    words = np.arange(1 << DTYPES[dtype].bits, dtype=np.uint8)
    assert np.array_equal(table(dtype), words.view(THEIRS[dtype]).astype(np.float32), equal_nan=True)
    finite = table(dtype)[np.isfinite(table(dtype))]
    assert finite.max() == DTYPES[dtype].high
    assert smallest(dtype) == finite[finite > 0].min()


@pytest.mark.parametrize("dtype", SMALL_FLOATS)
def test_numbers_round_to_the_nearest_word_and_ties_to_the_even_one(dtype: str) -> None:
    finite = np.unique(table(dtype)[np.isfinite(table(dtype))].astype(np.float64))
    ties = ((finite[1:] + finite[:-1]) / 2).astype(np.float32)
    around = np.concatenate([finite, ties, np.nextafter(ties, np.float32(-1e9)), np.nextafter(ties, np.float32(1e9))])
    expected = around.astype(THEIRS[dtype]).astype(np.float32)
    assert np.array_equal(decoded(encoded(around, dtype), dtype), expected)


@pytest.mark.parametrize("dtype", SMALL_FLOATS)
def test_what_is_too_large_becomes_the_largest_number(dtype: str) -> None:
    high = DTYPES[dtype].high
    assert decoded(encoded(np.array([1e30, -1e30, np.inf, -np.inf]), dtype), dtype).tolist() == [high, -high] * 2


@pytest.mark.parametrize("dtype", [dtype for dtype in SMALL_FLOATS if dtype != "float4e2m1"])
def test_nan_stays_nan(dtype: str) -> None:
    assert np.isnan(decoded(encoded(np.array([np.nan]), dtype), dtype)).all()


@pytest.mark.parametrize("dtype", SMALL_INTEGERS)
def test_integers_come_back_and_lose_their_higher_bits(dtype: str) -> None:
    info = DTYPES[dtype]
    numbers = np.arange(int(info.low), int(info.high) + 1)
    assert decoded(encoded(numbers, dtype), dtype).tolist() == numbers.tolist()
    assert encoded(numbers, dtype).max() < 1 << info.bits
    assert np.array_equal(encoded(numbers + (1 << info.bits), dtype), encoded(numbers, dtype))


@given(st.sampled_from(SMALL), st.lists(st.integers(0, 255), max_size=6))
def test_a_tensor_of_words_keeps_them(dtype: str, words: list[int]) -> None:
    array = np.array(words, np.uint8) & (1 << DTYPES[dtype].bits) - 1
    value = Tensor(dtype, array)
    finite = np.isfinite(value.numbers().astype(np.float64))
    again = tensor(value.numbers().astype(np.float64)[finite], dtype)
    same = again.numbers() == value.numbers()[finite]
    assert same.all()
    assert tensor(array, dtype).same(value)
