"""Judging front ends: what noise, type and shape explain passes, everything else is a finding of the right kind."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from miscompile.core.outcome import Crashed, Outcome, OutOfMemory, Raised, Rejected, TimedOut, Unsupported, Values
from miscompile.core.tensor import Array, Tensor, tensor
from miscompile.oracles.judge import FIXED_THRESHOLD
from miscompile.oracles.library_judge import judge
from miscompile.oracles.library_reference import LibraryReference

FLOATS = st.floats(-1e3, 1e3, width=32)


def reference(*values: Array, spread: float | None = None) -> LibraryReference:
    results = tuple(tensor(value) for value in values)
    return LibraryReference(results, tuple(np.full(value.shape, spread or 0.0) for value in values))


def kind(outcome: Outcome, held: LibraryReference | None = None) -> str | None:
    return judge(held or reference(np.zeros(2, np.float32)), outcome, "strict", {}).kind


@given(arrays(np.float32, (3,), elements=FLOATS))
def test_equal_results_pass_under_both_rules(value: Array) -> None:
    for compare in ("strict", "fixed"):
        found = judge(reference(value), Values(((tensor(value.copy()),),)), compare, {})
        assert (found.status, found.distance) == ("pass", 0.0)


@given(arrays(np.float32, (3,), elements=FLOATS), st.integers(0, 2))
def test_a_changed_element_is_found_and_named(value: Array, place: int) -> None:
    other = value.copy()
    other[place] += 1 + np.abs(value).max()
    found = judge(reference(value), Values(((tensor(other),),)), "strict", {})
    assert (found.status, found.kind, found.place) == ("finding", "wrong", place)
    assert found.distance is not None
    assert found.distance > found.allowed


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (None, "missing"),
        (tensor(np.zeros(3, np.float32)), "shape"),
        (tensor(np.zeros(2, np.float64)), "dtype"),
        (tensor(np.array([0, np.nan], np.float32)), "wrong"),
        (tensor(np.array([0, np.inf], np.float32)), "wrong"),
        (tensor(np.array([0, -0.0], np.float32)), None),
    ],
)
def test_kinds_of_results(result: Tensor | None, expected: str | None) -> None:
    assert kind(Values(((result,),))) == expected


@pytest.mark.parametrize(
    ("outcome", "status", "expected"),
    [
        (Values(((),)), "finding", "missing"),
        (Unsupported("compile", "no such operator"), "unsupported", None),
        (Rejected("compile", "no"), "unsupported", None),
        (OutOfMemory("run"), "memory", None),
        (Raised("compile", "IndexError", "list index"), "finding", "exception"),
        (Crashed("compile", 11), "finding", "death"),
        (TimedOut("run", 3.0), "finding", "hang"),
    ],
)
def test_kinds_of_outcomes(outcome: Outcome, status: str, expected: str | None) -> None:
    found = judge(reference(np.zeros(2, np.float32)), outcome, "strict", {})
    assert (found.status, found.kind) == (status, expected)


def test_infinities_and_nan_of_the_library_are_expected() -> None:
    value = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
    assert kind(Values(((tensor(value.copy()),),)), reference(value)) is None
    assert kind(Values(((tensor(np.array([np.nan, np.inf, np.inf, 1.0], np.float32)),),)), reference(value)) == "wrong"


def test_subnormal_numbers_may_become_zero() -> None:
    value = np.array([3e-43, -1e-39], np.float32)
    assert kind(Values(((tensor(np.zeros(2, np.float32)),),)), reference(value)) is None
    assert kind(Values(((tensor(np.array([3e-43, 3e-38], np.float32)),),)), reference(value)) == "wrong"


def test_two_units_of_subnormal_half_precision_are_rounding() -> None:
    value = np.array([2.4e-7], np.float16)
    near, far = value - np.float16(1.2e-7), value - np.float16(1.8e-7)
    assert kind(Values(((tensor(near),),)), reference(value)) is None
    assert kind(Values(((tensor(far),),)), reference(value)) == "wrong"


def test_noise_counts_more_in_the_narrower_type_of_a_compiler() -> None:
    held = LibraryReference((tensor(np.array([1.0])),), (np.array([1e-13]),))
    moved = Values(((tensor(np.array([1.002], np.float64)),),))
    assert judge(held, moved, "strict", {}).kind == "wrong"
    assert judge(held, moved, "strict", {"float64": "float32"}).kind is None


def test_an_element_that_may_be_anything_is_left_out() -> None:
    held = LibraryReference((tensor(np.array([3, 5], np.int64)),), (np.array([np.inf, 0.0]),))
    assert kind(Values(((tensor(np.array([9, 5], np.int64)),),)), held) is None
    assert kind(Values(((tensor(np.array([3, 6], np.int64)),),)), held) == "wrong"


def test_where_noise_makes_elements_jump_others_may_as_well() -> None:
    value = np.zeros(1000, np.float32)
    value[0] = 100.0
    moved = np.zeros(1000)
    moved[7] = 100.0
    few, many = value.copy(), value.copy()
    few[3], many[:500] = 50.0, 50.0
    held = LibraryReference((tensor(value),), (moved,))
    steady = LibraryReference((tensor(value),), (np.zeros(1000),))
    assert kind(Values(((tensor(few),),)), held) is None
    assert kind(Values(((tensor(few),),)), steady) == "wrong"
    assert kind(Values(((tensor(many),),)), held) == "wrong"


def test_integers_that_doubles_cannot_tell_apart() -> None:
    value = np.array([2**53 + 1], np.int64)
    assert kind(Values(((tensor(value - 1),),)), reference(value)) == "wrong"
    assert kind(Values(((tensor(value.copy()),),)), reference(value)) is None


def test_a_type_that_is_computed_in_a_narrower_one_by_design() -> None:
    value = np.array([1.0, 2.0], np.float64)
    near, narrow = value * (1 + 1e-4), {"float64": "float32"}
    assert judge(reference(value), Values(((tensor(near),),)), "strict", {}).kind == "wrong"
    assert judge(reference(value), Values(((tensor(near),),)), "strict", narrow).kind is None
    assert judge(reference(value), Values(((tensor(near, "float32"),),)), "strict", narrow).kind is None


def test_what_the_narrower_type_does_not_hold_is_left_open() -> None:
    value, narrow = np.array([1e200, 2.0], np.float64), {"float64": "float32"}
    other = np.array([3.4028234663852886e38, 2.0], np.float64)
    assert judge(reference(value), Values(((tensor(other),),)), "strict", narrow).kind is None
    assert judge(reference(value), Values(((tensor(other),),)), "strict", {}).kind == "wrong"


def test_the_fixed_rule_is_a_distance() -> None:
    value = np.array([1000.0], np.float32)
    off = Values(((tensor(value + 0.01),),))
    assert judge(reference(value), off, "strict", {}).kind is None
    found = judge(reference(value), off, "fixed", {})
    assert (found.kind, found.allowed) == ("wrong", FIXED_THRESHOLD)


def test_results_left_open_are_not_compared() -> None:
    held = LibraryReference((tensor(np.array([1], np.int64)), tensor(np.array([1.0], np.float32))), (None, np.zeros(1)))
    assert kind(Values(((tensor(np.array([2], np.int64)), tensor(np.array([1.0], np.float32))),)), held) is None
    assert kind(Values(((tensor(np.array([2], np.int32)), tensor(np.array([1.0], np.float32))),)), held) == "dtype"


def test_texts_are_compared_where_they_are_promised() -> None:
    texts = np.array(["a", "b"], object)
    promised = LibraryReference((tensor(texts),), (np.array([0.0, np.inf]),))
    assert kind(Values(((tensor(texts.copy()),),)), promised) is None
    assert kind(Values(((tensor(np.array(["a", "x"], object)),),)), promised) is None
    found = judge(promised, Values(((tensor(np.array(["x", "b"], object)),),)), "strict", {})
    assert (found.kind, found.message) == ("wrong", "output 0: element 0 is 'x' instead of 'a'")
