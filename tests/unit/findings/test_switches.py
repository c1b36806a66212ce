"""Tests of what a finding needs besides the compiler's defaults."""

from miscompile.findings.switches import switches_of


def test_a_finding_of_the_default_build_needs_nothing() -> None:
    assert switches_of({}) == ()
    assert switches_of({"faulty": None}) == ()
    assert switches_of({"faulty": {"level": "full", "disabled": []}, "needs": []}) == ()


def test_options_and_passes_that_are_off_are_named() -> None:
    facts = {"faulty": {"level": "full", "disabled": ["A", "B"]}, "needs": ["session.x=1"]}
    assert switches_of(facts) == ("session.x=1", "2 optional passes switched off")
    assert switches_of({"faulty": {"disabled": ["A"]}}) == ("1 optional pass switched off",)
