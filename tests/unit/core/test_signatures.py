"""Tests of signatures: the words of a bug that no default build shows."""

import pytest

from miscompile.core.finding import Signature


def signature(culprits: tuple[str, ...] = (), text: str = "") -> Signature:
    return Signature("toy", "wrong", "", culprits, text)


@pytest.mark.parametrize(
    ("own", "printed"),
    [
        (signature(("Fuse",)), "toy:wrong:Fuse in non-default builds"),
        (signature(("Fuse",), "Div>Mul"), "toy:wrong:Fuse in Div>Mul in non-default builds"),
        (signature((), "bad shape"), "toy:wrong:bad shape in non-default builds"),
    ],
)
def test_a_bug_that_no_default_build_shows_has_a_signature_of_its_own(own: Signature, printed: str) -> None:
    assert not own.is_switched
    switched = own.switched()
    assert str(switched) == printed
    assert switched.is_switched
    assert switched.switched() == switched


def test_a_finding_without_a_known_cause_stays_without_one() -> None:
    assert signature().switched() == signature()
