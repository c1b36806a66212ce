"""Results on disk: nothing is lost to a kill but the line that was being written."""

import math
from pathlib import Path

import pytest

from miscompile.base.errors import StoreError
from miscompile.migration.results import ResultRow, appending, line_of, place_of, read_rows, totals

ROWS = [
    ResultRow("a", "torch.add", "torch-tvm", "pass", seconds=0.5, distance=0.0),
    ResultRow("b", "torch.cat", "torch-tvm", "finding", "tvm:wrong:f", "f", "wrong", "off\nby much", 1.0, math.inf),
    ResultRow("c", "torch.cat", "torch-tvm", "finding", "tvm:exception:f", "f", "exception"),
    ResultRow("d", "torch.empty", "torch-tvm", "undefined"),
]


def test_rows_are_read_back(tmp_path: Path) -> None:
    place = place_of(tmp_path, "torch-tvm")
    with appending(place) as rows:
        rows.add(ROWS[:2])
    with appending(place) as rows:
        rows.add(ROWS[2:])
    found = read_rows(place)
    assert [row.digest for row in found] == ["a", "b", "c", "d"]
    assert found[1].distance == math.inf
    assert found[1].message == "off by much"


def test_a_line_that_was_cut_off_is_left_out_and_written_over(tmp_path: Path) -> None:
    place = place_of(tmp_path, "x")
    with appending(place) as rows:
        rows.add(ROWS[:2])
    place.write_text(place.read_text() + line_of(ROWS[2])[:20])
    assert len(read_rows(place)) == 2
    with appending(place) as rows:
        rows.add(ROWS[3:])
    assert [row.digest for row in read_rows(place)] == ["a", "b", "d"]


def test_damage_elsewhere_is_named(tmp_path: Path) -> None:
    place = tmp_path / "x.jsonl"
    place.write_text("{}\n" + line_of(ROWS[0]) + "\n")
    with pytest.raises(StoreError, match="line 1"):
        read_rows(place)
    assert read_rows(tmp_path / "none") == []


def test_totals_count_functions_once() -> None:
    found = totals("torch-tvm", ROWS)
    assert (found.tests, found.operators, found.converters) == (4, 3, 1)
    assert found.statuses == {"finding": 2, "pass": 1, "undefined": 1}
    assert found.kinds == {"wrong": 1, "exception": 1}
