"""Triage looks at look-alikes of known bugs while these take a small share of the CPU time."""

from hypothesis import given
from hypothesis import strategies as st

from miscompile.engine.look_alikes import HEADSTART_US, SHARE, affordable

MICROSECONDS = st.integers(0, 10**12)


def test_a_campaign_that_knows_nothing_looks() -> None:
    assert affordable({})


def test_the_first_look_alikes_are_looked_at_before_any_test_has_been_counted() -> None:
    assert affordable({"known_us": HEADSTART_US})
    assert not affordable({"known_us": HEADSTART_US + 1})


@given(tests=MICROSECONDS, triage=MICROSECONDS, known=MICROSECONDS)
def test_the_share_of_known_bugs_is_limited(tests: int, triage: int, known: int) -> None:
    counters = {"test_us": tests, "triage_us": triage, "known_us": known}
    assert affordable(counters) == (known <= HEADSTART_US + SHARE * (tests + triage))


@given(tests=MICROSECONDS, known=MICROSECONDS)
def test_more_tests_never_forbid_a_look(tests: int, known: int) -> None:
    if affordable({"test_us": tests, "known_us": known}):
        assert affordable({"test_us": tests + 1_000_000, "known_us": known})
