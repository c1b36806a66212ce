"""Searches for culprits get a share of a lane's time, and none is lost."""

from hypothesis import given
from hypothesis import strategies as st

from miscompile.engine.searches import HEADSTART_US, MOST_WAITING, SHARE, Searches


def test_searches_that_took_their_share_wait_until_tests_have_had_theirs() -> None:
    assert Searches[str](limited=True, searched_us=HEADSTART_US).allowed
    searches = Searches[str](limited=True, searched_us=HEADSTART_US + 1)
    assert not searches.allowed
    assert searches.postpone("first") is None
    assert searches.due() is None
    searches.tested_us = round(2 / SHARE)
    assert searches.due() == "first"
    assert searches.due() is None


def test_a_lane_that_must_repeat_itself_postpones_nothing() -> None:
    searches = Searches[str](limited=False, searched_us=10**12)
    assert searches.allowed


def test_look_alikes_are_searched_while_known_bugs_are_cheap() -> None:
    assert not Searches[str](limited=True, known_us=10**7).may_look
    assert Searches[str](limited=True, known_us=10**7, tested_us=10**9).may_look
    assert Searches[str](limited=False, known_us=10**12).may_look


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 10**8)), max_size=100))
def test_every_violation_is_searched_for_or_handed_on_in_order(turns: list[tuple[bool, int]]) -> None:
    searches = Searches[int](limited=True, searched_us=HEADSTART_US + 1)
    out: list[int] = []
    for number, (finds, tested) in enumerate(turns):
        searches.tested_us += tested
        if finds:
            left = searches.postpone(number)
            out += [] if left is None else [left]
        due = searches.due()
        if due is not None:
            out.append(due)
            searches.searched_us += 10**7
        assert len(searches.waiting) <= MOST_WAITING
    assert out + list(searches.waiting) == [number for number, (finds, _) in enumerate(turns) if finds]
