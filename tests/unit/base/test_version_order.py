"""Release numbers sort, agree and meet conditions as the packaging rules say."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miscompile.base.errors import SpecError
from miscompile.base.versions import is_final, is_version, order, same_version, satisfies

RISING = [
    "0.9", "1.0.dev1", "1.0a1.dev2", "1.0a1", "1.0b2", "1.0rc1", "1.0", "1.0+cpu", "1.0+cpu.2", "1.0.post1.dev1",
    "1.0.post1", "1.0.1", "1.2", "1.10", "2.0", "1!0.1",
]  # fmt: skip
"""In the order of the version specifiers page."""

numbers = st.lists(st.integers(0, 30), min_size=1, max_size=4).map(lambda pieces: ".".join(map(str, pieces)))


def test_the_order() -> None:
    for low, high in itertools.combinations(RISING, 2):
        assert order(low) < order(high), (low, high)


@pytest.mark.parametrize("pair", [("1.20", "1.20.0"), ("V1.0", "1.0"), ("1.0-1", "1.0.post1"), ("1.0-RC1", "1.0c1")])
def test_spellings_that_mean_the_same(pair: tuple[str, str]) -> None:
    assert order(pair[0]) == order(pair[1])


@given(numbers, numbers)
def test_numbers_sort_like_their_parts(a: str, b: str) -> None:
    def parts(text: str) -> list[int]:
        return [*map(int, text.split(".")), 0, 0, 0, 0][:4]

    assert (order(a) < order(b)) == (parts(a) < parts(b))
    assert satisfies(a, f"<{b}") != satisfies(a, f">={b}")
    assert satisfies(a, f"<={b},>={b}") == same_version(a, b) == satisfies(a, f"=={b}")


@pytest.mark.parametrize("text", ["", "one", "1.", "1..2", "1.2.x", ">=1", "1.0/..", "../1", "1 2", "=1.2"])
def test_what_is_no_version(text: str) -> None:
    assert not is_version(text)
    with pytest.raises(SpecError, match="is no version"):
        order(text)


def test_final_releases() -> None:
    assert [text for text in RISING if is_final(text)] == [
        "0.9",
        "1.0",
        "1.0.post1",
        "1.0.1",
        "1.2",
        "1.10",
        "2.0",
        "1!0.1",
    ]


def test_conditions() -> None:
    assert satisfies("1.18.1", "<1.19")
    assert not satisfies("1.19", "<1.19")
    assert satisfies("3.11", ">=3.11,<3.13")
    assert not satisfies("3.13", ">=3.11, <3.13")
    assert satisfies("2.13.0+cpu", "==2.13.0")
    assert satisfies("7", "")
    assert satisfies("7", "!=8")
    for text in ("~=1.0", "1.0", "<", "=>1"):
        with pytest.raises(SpecError):
            satisfies("1", text)


def test_a_local_part_counts_when_it_is_asked_for() -> None:
    assert same_version("2.13.0+cpu", "2.13.0")
    assert same_version("2.13.0+cpu", "2.13.0+cpu")
    assert not same_version("2.13.0", "2.13.0+cpu")
    assert not same_version("built by hand", "2.13.0")
