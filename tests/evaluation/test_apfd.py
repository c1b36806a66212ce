"""Measures of an order: bounds, what is best and worst, and figures worked out by hand."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.opera.apfd import SHARES, apfd, rauc, times

BUGS = st.lists(st.sampled_from([(), (), ("a",), ("b",), ("c",)]), min_size=1, max_size=12).filter(any)


@given(BUGS, st.integers(0, 99))
def test_no_order_is_better_than_the_perfect_one(bugs: list[tuple[str, ...]], seed: int) -> None:
    firsts = list(dict.fromkeys(one for one in bugs if one))
    rest = list(bugs)
    for one in firsts:
        rest.remove(one)
    perfect = [*firsts, *rest]
    shuffled = list(bugs)
    Random(seed).shuffle(shuffled)
    assert 0 < apfd(shuffled) <= apfd(perfect) < 1
    for share in SHARES:
        assert 0 <= rauc(shuffled, share) <= rauc(perfect, share) == 1


@given(st.integers(1, 6), st.integers(0, 6))
def test_the_reversed_perfect_order_is_the_worst(bugs: int, idle: int) -> None:
    count = bugs + idle
    best = [(number,) for number in range(bugs)] + [()] * idle
    worst = best[::-1]
    assert apfd(best) == pytest.approx(1 - (bugs + 1) / (2 * count) + 1 / (2 * count))
    assert apfd(best) + apfd(worst) == pytest.approx(1)
    assert rauc(worst) <= rauc(best) == 1


def test_figures_by_hand() -> None:
    bugs = [(), ("a",), (), ("a", "b")]
    assert apfd(bugs) == pytest.approx(1 - (2 + 4) / (4 * 2) + 1 / 8)
    # found after each test: 0, 1, 1, 2; ideally, the last test comes first: 2, 2, 2, 2
    assert rauc(bugs) == pytest.approx(4 / 8)
    assert rauc(bugs, 0.75) == pytest.approx(2 / 6)
    assert rauc(bugs, 0.25) == 0
    assert times(bugs, [1.0, 2.0, 3.0, 4.0], before=0.5) == {"a": 3.5, "b": 10.5}


def test_what_has_no_measure_is_said() -> None:
    with pytest.raises(ValueError, match="without bugs"):
        apfd([(), ()])
    with pytest.raises(ValueError, match="without bugs"):
        rauc([()])
    with pytest.raises(ValueError, match="share"):
        rauc([("a",)], 0)
    with pytest.raises(ValueError, match="one duration"):
        times([("a",)], [])
