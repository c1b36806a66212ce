"""Numbers in sentences."""

import pytest

from miscompile.base.wording import counted


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [(0, "finding", "0 findings"), (1, "finding", "1 finding"), (2000, "test", "2,000 tests"), (2, "pass", "2 passes")],
)
def test_a_noun_agrees_with_its_number(number: int, noun: str, text: str) -> None:
    assert counted(number, noun) == text
