"""Rounding is told from a fault by experiment."""

from collections.abc import Sequence

import numpy as np
import pytest

from miscompile.core.tensor import Array
from miscompile.testing.closeness import difference, drawn


def total(inputs: Sequence[Array]) -> list[Array]:
    return [np.asarray(inputs[0].sum(dtype=np.float32))]


def told(function: object, inputs: Sequence[Array], *got: Array) -> str:
    assert callable(function)
    return difference(function, inputs, got, np.random.default_rng(0))


VALUES = np.random.default_rng(1).standard_normal(10_000).astype(np.float32)


def test_another_order_of_a_sum_is_rounding() -> None:
    other = np.float32(0)
    for value in VALUES:
        other += value
    assert other != total([VALUES])[0]
    assert told(total, [VALUES], np.asarray(other)) == ""


def test_an_omitted_element_is_a_fault() -> None:
    assert "1 of 1 elements differ" in told(total, [VALUES], total([np.delete(VALUES, 3)])[0])


def test_a_step_at_the_edge_is_no_evidence() -> None:
    def steps(inputs: Sequence[Array]) -> list[Array]:
        return [(inputs[0] / np.float32(0.1) >= np.float32(1)).astype(np.int32)]

    edge = np.asarray([0.1, 5.0], np.float32)
    assert told(steps, [edge], 1 - steps([edge])[0]) == "output 0: 1 of 2 elements differ; at [1] it is 0, expected 1"


@pytest.mark.parametrize(
    ("got", "text"),
    [
        ((np.zeros(2, np.int64),), "int64[2], expected int32[2]"),
        ((np.zeros(3, np.int32),), "int32[3], expected int32[2]"),
        ((), "0 outputs, expected 1"),
        ((np.asarray([7, 9], np.int32),), "1 of 2 elements differ; at [1] it is 9, expected 8"),
        ((np.asarray([7, 8], np.int32),), ""),
    ],
)
def test_everything_but_floats_is_exact(got: tuple[Array, ...], text: str) -> None:
    answer = told(lambda inputs: inputs, [np.asarray([7, 8], np.int32)], *got)
    assert text in answer
    assert bool(answer) == bool(text)


def test_nan_where_a_number_was_is_a_fault() -> None:
    one = np.asarray([1.0, np.nan], np.float32)
    assert "1 of 2" in told(lambda inputs: inputs, [one], np.asarray([np.nan, np.nan], np.float32))
    assert told(lambda inputs: inputs, [one], one.copy()) == ""


def test_drawn_inputs_are_like_the_examples() -> None:
    examples: list[Array] = [np.asarray([[2, 5]], np.int64), np.ones((2, 3), np.float16), np.asarray([True])]
    for seed in range(20):
        new = drawn(examples, np.random.default_rng(seed))
        assert [(one.shape, one.dtype) for one in new] == [(one.shape, one.dtype) for one in examples]
        assert 2 <= new[0].min() <= new[0].max() <= 5
