"""Tables on a terminal: no word is broken, whatever the width."""

import io

import pytest
from rich.console import Console

from miscompile.reports.tables import PlainTable, plain_table

LONG = "AdaptiveAveragePoolTransformerFusion"
ROWS = [(f"exception-{number:010x}", LONG, "pending", str(number)) for number in range(3)]


def drawn(table: PlainTable, width: int) -> list[str]:
    sink = io.StringIO()
    Console(file=sink, width=width, color_system=None).print(table)
    return sink.getvalue().splitlines()


def a_table(*, cut: bool = False) -> PlainTable:
    table = plain_table("finding", "culprit passes, or message", "status", numbers=("seen",), cut=("finding",) * cut)
    for row in ROWS:
        table.add_row(*row)
    return table


@pytest.mark.parametrize("width", [60, 80, 120])
def test_every_word_stays_whole_and_within_the_terminal(width: int) -> None:
    lines = drawn(a_table(), width)
    words = " ".join(lines).split()
    assert all(cell in words for row in ROWS for cell in row)
    assert max(map(len, lines)) <= width


def test_columns_that_do_not_fit_stand_below_their_row() -> None:
    lines = drawn(a_table(), 60)
    assert lines[0].split() == ["finding", "status", "seen"]
    assert lines[1].split() == ["exception-0000000000", "pending", "0"]
    assert [line.rstrip() for line in lines[2:4]] == ["  culprit passes, or message:", f"  {LONG}"]


def test_texts_wrap_between_words_first() -> None:
    table = plain_table("pass", "why", numbers=("seen",))
    table.add_row("Fusion", "one two three four five six seven", "12345")
    assert [line.split() for line in drawn(table, 30)] == [
        ["pass", "why", "seen"],
        ["Fusion", "one", "two", "three", "12345"],
        ["four", "five", "six"],
        ["seven"],
    ]


def test_a_column_that_may_be_cut_leaves_the_count_visible() -> None:
    table = plain_table("class", numbers=("seen",), cut=("class",))
    table.add_row(f"onnxruntime:wrong:{LONG}+{LONG}+{LONG}", "123")
    head, row = drawn(table, 80)
    assert head.split() == ["class", "seen"]
    assert row.rstrip().endswith("123")
    assert "…" in row


def test_a_row_has_a_cell_for_each_column() -> None:
    with pytest.raises(ValueError, match="3 columns"):
        plain_table("a", "b", numbers=("c",)).add_row("1", "2")
