"""Subspaces of parameters: total, stable, and as the paper draws them."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miscompile.core.tensor import tensor
from miscompile.instances.code import value_from, value_json
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn, Held, Made, Name, SliceValue, Slot, Value
from miscompile.migration.ranking.partition import setting, subspace


def tensors() -> st.SearchStrategy[Value]:
    shapes = st.lists(st.integers(0, 3), max_size=8).map(tuple)
    return st.builds(Drawn, st.sampled_from(["float32", "int64", "bool"]), shapes, st.just(0.0), st.just(5.0))


def values() -> st.SearchStrategy[Value]:
    plain: st.SearchStrategy[Value] = (
        st.none() | st.booleans() | st.integers(-9, 9) | st.floats() | st.text(max_size=4) | st.complex_numbers()
        | st.builds(Name, st.just("dtype"), st.sampled_from(["float32", "int8"])) | tensors()
    )  # fmt: skip
    keys: st.SearchStrategy[Value] = st.text(max_size=3)
    return st.recursive(
        plain,
        lambda inner: (
            st.lists(inner, max_size=8)
            | st.lists(inner, max_size=3).map(tuple)
            | st.dictionaries(keys, inner, max_size=3)
            | st.builds(SliceValue, inner, inner, inner)
            | st.builds(lambda a, b: Made("torch.nn.Identity", (a,), {"b": b}), inner, inner)
        ),
        max_leaves=6,
    )


@settings(max_examples=300)
@given(values())
def test_every_value_has_one_subspace(value: Value) -> None:
    assert hash(subspace(value)) == hash(subspace(value))
    assert subspace(value_from(value_json(value))) == subspace(value)


@given(
    st.one_of(st.booleans(), st.none(), st.text(max_size=3)), st.one_of(st.booleans(), st.none(), st.text(max_size=3))
)
def test_values_of_limited_sets_are_subspaces_by_themselves(one: Value, other: Value) -> None:
    assert (subspace(one) == subspace(other)) == (one == other and type(one) is type(other))


@given(st.integers(), st.integers())
def test_integers_have_five_subspaces(one: int, other: int) -> None:
    classes: list[Callable[[int], bool]]
    classes = [lambda n: n <= -2, lambda n: n == -1, lambda n: n == 0, lambda n: n == 1, lambda n: n >= 2]
    together = any(inside(one) and inside(other) for inside in classes)
    assert (subspace(one) == subspace(other)) == together


def test_floats_have_three_subspaces_and_nan() -> None:
    found = [subspace(value) for value in (-math.inf, -0.5, -0.0, 0.0, 5e-324, math.inf, math.nan)]
    assert found[0] == found[1]
    assert found[2] == found[3]
    assert found[4] == found[5]
    assert len(set(found)) == 4


def test_types_of_numbers_are_not_mixed() -> None:
    assert len({subspace(value) for value in (True, 1, 1.0, complex(1.0), "1")}) == 5


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ((2, 3), (7, 9), True),
        ((2, 1), (2, 2), False),
        ((0,), (1,), False),
        ((), (1,), False),
        ((2,) * 6, (2,) * 9, True),
        ((2,) * 5, (2,) * 6, False),
    ],
)
def test_tensors_are_intersections_of_type_rank_and_sizes(
    one: tuple[int, ...], other: tuple[int, ...], same: bool
) -> None:
    assert (subspace(Drawn("float32", one)) == subspace(Drawn("float32", other))) is same
    assert subspace(Drawn("float32", one)) != subspace(Drawn("float16", one))


def test_a_tensor_has_the_same_subspace_however_it_is_given() -> None:
    held = Held(tensor(np.zeros((2, 1), np.float32)))
    assert subspace(held) == subspace(Drawn("float32", (3, 1))) == subspace(Slot(0, "float32", (2, 1)))


def test_sequences_by_length_and_elements() -> None:
    assert subspace([2, 5]) == subspace((3, 4)) != subspace([2])
    assert subspace([2, 1]) != subspace([2, 2])
    assert subspace([2] * 7) == subspace([3] * 8)


def test_element_types_of_onnx_are_not_mere_numbers() -> None:
    casts = [Instance("onnx", "Cast", "node", kwargs={"to": code}, version=13) for code in (7, 10, 10)]
    first, second, third = (setting(cast) for cast in casts)
    assert first != second == third
    axes = [Instance("onnx", "Softmax", "node", kwargs={"axis": axis}, version=13) for axis in (2, 3)]
    assert setting(axes[0]) == setting(axes[1])
    assert setting(axes[0]) != setting(Instance("onnx", "Softmax", "node", kwargs={"axis": 2}, version=11))
