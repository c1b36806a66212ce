import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_cases import full

from miscompile.core.case import Port
from miscompile.core.outcome import Values
from miscompile.core.tensor import Tensor, tensor
from miscompile.oracles.compare import (
    contradiction,
    describe_difference,
    difference,
    finite,
    largest_difference,
    mismatches,
    within_ulps,
)

NAN, INF = float("nan"), float("inf")
FLOATS = st.floats(width=32, allow_nan=True, allow_infinity=True)


def found(expected: Tensor | None, actual: Tensor | None) -> str:
    """Return the kind of the one mismatch, `` when there is none."""
    seen = mismatches([Port("y", "float32", None)], Values(((expected,),)), Values(((actual,),)))
    return seen[0].kind if seen else ""


@pytest.mark.parametrize(
    ("expected", "actual", "kind"),
    [
        (full([1, 2]), full([1, 2]), ""),
        (full([1, 2]), full([1, 3]), "wrong"),
        (full([0.0]), full([-0.0]), ""),
        (full([NAN]), full([NAN]), ""),
        (full([NAN]), full([1.0]), "wrong"),
        (full([1.0]), full([NAN]), "wrong"),
        (full([INF]), full([INF]), ""),
        (full([INF]), full([-INF]), "wrong"),
        (None, None, ""),
        (full([1]), None, "missing"),
        (None, full([1]), "missing"),
        (full([1], "int64"), full([1], "int32"), "dtype"),
        (full([1], "bfloat16"), full([16256], "uint16"), "dtype"),
        (full([1]), full([[1]]), "shape"),
        (full(1), full([1]), "shape"),
        (full(np.zeros((0, 2))), full(np.zeros((0, 2))), ""),
        (full(np.zeros((0, 2))), full(np.zeros((2, 0))), "shape"),
        (full([0.0], "bfloat16"), full([-0.0], "bfloat16"), ""),
        (full([NAN], "bfloat16"), full([NAN], "bfloat16"), ""),
        (full([1.0], "bfloat16"), full([1.0078125], "bfloat16"), "wrong"),
        (full([True]), full([True]), ""),
        (full([True], "bool"), full([False], "bool"), "wrong"),
        (tensor(np.array(["a", "b"], object)), tensor(np.array(["a", "b"], object)), ""),
        (tensor(np.array(["a", "b"], object)), tensor(np.array(["a", "c"], object)), "wrong"),
        (full([2**62], "int64"), full([2**62 + 1], "int64"), "wrong"),
        (full([2**63], "uint64"), full([2**63 + 1], "uint64"), "wrong"),
    ],
)
def test_what_counts_as_a_difference(expected: Tensor | None, actual: Tensor | None, kind: str) -> None:
    assert found(expected, actual) == kind


def test_nan_payloads_do_not_count() -> None:
    quiet, other = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)
    assert found(full([quiet]), full([other])) == ""


@given(st.lists(FLOATS, max_size=6), st.lists(FLOATS, max_size=6))
def test_comparison_is_symmetric_and_reflexive(left: list[float], right: list[float]) -> None:
    a, b = full(left), full(right)
    assert found(a, a) == found(b, Tensor("float32", b.array.copy())) == ""
    assert found(a, b) == found(b, a)


@given(st.lists(st.tuples(FLOATS, FLOATS), min_size=1, max_size=6))
def test_difference_is_zero_exactly_where_numbers_are_equal(pairs: list[tuple[float, float]]) -> None:
    a, b = full([left for left, _ in pairs]), full([right for _, right in pairs])
    gap = difference(a, b)
    same = (a.array == b.array) | (np.isnan(a.array) & np.isnan(b.array))
    assert ((gap == 0) == same).all()
    assert not np.isnan(gap).any()
    assert (gap == difference(b, a)).all()
    assert largest_difference(a, b) == gap.max()


def test_every_differing_output_of_every_feed_is_listed_in_order() -> None:
    ports = [Port(name, "float32", (1,)) for name in "ab"]
    one, two = full([1]), full([2])
    seen = mismatches(ports, Values(((one, one), (one, one))), Values(((one, two), (None, two))))
    assert [(m.feed, m.output, m.kind) for m in seen] == [(0, 1, "wrong"), (1, 0, "missing"), (1, 1, "wrong")]


def test_a_scalar_and_the_worst_element_are_described() -> None:
    text = describe_difference(full([1, 2, 3]), full([1, 2.5, 9]))
    assert text == "2 of 3 elements differ, by up to 6: 9.0 instead of 3.0"
    assert "1 of 1 elements" in describe_difference(full(1), full(2))
    assert describe_difference(full([True], "bool"), full([False], "bool")).startswith("1 of 1")
    assert describe_difference(tensor(np.array(["a"], object)), tensor(np.array(["b"], object))) == "strings differ"


def test_nothing_is_far_from_nothing() -> None:
    assert largest_difference(full(np.zeros(0)), full(np.zeros(0))) == 0.0


@pytest.mark.parametrize(
    ("value", "is_finite"),
    [
        (full([1.0]), True),
        (full([NAN]), False),
        (full([-INF], "float16"), False),
        (full([INF], "bfloat16"), False),
        (full([3], "int8"), True),
        (full(np.zeros(0)), True),
        (None, True),
        (tensor(np.array(["nan"], object)), True),
    ],
)
def test_finite_looks_at_floats_only(value: Tensor | None, is_finite: bool) -> None:
    assert finite(Values(((full([1]), value),))) is is_finite


@pytest.mark.parametrize(
    ("port", "value", "kind"),
    [
        (Port("y", "float32", (2,)), full([1, 2]), ""),
        (Port("y", "float32", None), full([1, 2]), ""),
        (Port("y", "float32", ("n",)), full([1, 2]), ""),
        (Port("y", "float32", (None, 2)), full([[1, 2]]), ""),
        (Port("y", "float32", (2,)), None, ""),
        (Port("y", "float32", (3,)), full([1, 2]), "shape"),
        (Port("y", "float32", (2, 1)), full([1, 2]), "shape"),
        (Port("y", "float32", ()), full([1]), "shape"),
        (Port("y", "int32", (2,)), full([1, 2]), "dtype"),
    ],
)
def test_contradictions_of_the_declared_type(port: Port, value: Tensor | None, kind: str) -> None:
    seen = contradiction([port], Values(((value,),)))
    assert (seen.kind if seen else "") == kind


@given(st.floats(2.0**-10, 2.0**10, width=32), st.integers(0, 4))
def test_ulps_are_counted(value: float, steps: int) -> None:
    moved = np.float32(value)
    for _ in range(steps):
        moved = np.nextafter(moved, np.float32(np.inf))
    near = within_ulps(full([value]), full([moved]), 2)
    assert near or steps > 2  # an ulp is between half of eps and eps of the value, so up to four may still pass
    assert within_ulps(full([value]), full([np.float32(value) * np.float32(1.001)]), 2) is False


def test_integers_have_no_last_place() -> None:
    assert not within_ulps(full([1], "int32"), full([2], "int32"), 1e9)
    assert within_ulps(full([NAN, 1.0]), full([NAN, 1.0]), 2)
    assert not within_ulps(full([NAN]), full([1.0]), 2)
    assert not within_ulps(full([0.0]), full([1e-20]), 2)
