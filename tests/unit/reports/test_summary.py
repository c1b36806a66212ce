"""The summary: one value for programs and people."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from miscompile.base.errors import StoreError
from miscompile.findings.store import Campaign, Record, Store, own_folder
from miscompile.findings.tasks import MADE, NOT_DRAWN, TASKS, TaskLog
from miscompile.reports.summary import Summary, summarise, summary_view, write_summary


def printed(summary: Summary) -> str:
    sink = io.StringIO()
    Console(file=sink, width=100, color_system=None).print(summary_view(summary, Path("out")))
    return sink.getvalue()


def a_summary(*records: Record) -> Summary:
    return Summary("toy", 0, 10, 2.0, 5.0, 1, 1, 0, 0, 3, records)


def test_an_empty_store_has_a_summary(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        summary = summarise(store)
    assert (summary.tests, summary.tests_per_second, summary.findings, summary.sessions) == (0, 0.0, (), 0)
    assert "Nothing was tested: no test ended" in printed(summary)


def test_sessions_are_added_up(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.begin(Campaign("toy", 0, {}, {"numpy": "2"}, 0.0))
        for seconds in (3.0, 2.0):
            store.note_session(store.begin_session(0.0), seconds)
            store.add_counters({"tests": 50, "mismatches_judged_benign": 1})
        summary = summarise(store)
    assert (summary.seconds, summary.tests, summary.tests_per_second, summary.sessions) == (5.0, 100, 20.0, 2)
    assert (summary.mismatches_judged_benign, summary.seed, summary.versions) == (2, 0, {"numpy": "2"})


def test_the_tasks_of_all_campaigns_are_added_up(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        for number, target in enumerate(("toy", "reference", "tvm"), 1):
            store.begin(Campaign(target, 0, {}, {}, 0.0))
            log = TaskLog(own_folder(tmp_path, number) / TASKS)
            if target != "tvm":
                log.expect([f"Add Op{number} 0" for number in range(10)])
                log.note([(MADE, "Add Relu 0"), (NOT_DRAWN, "Sin Log 0")], 1, 0)
        summary = summarise(store)
    assert summary.as_json()["tasks"] == {"total": 20, "made": 2, "not_drawn": 2}
    assert "20 tasks: 2 made, 2 cannot be drawn, 16 left" in printed(summary)


def test_the_table_shows_markup_as_it_is() -> None:
    text = printed(a_summary(Record("exception-1", "s", "pending", "exception", "no kernel [/bold] for [x]", 4)))
    assert "no kernel [/bold] for [x]" in text
    assert text.split("[x]")[1].split()[:2] == ["?", "5"]
    assert "80% taken" in text


def test_the_file_is_strict_json_and_replaced_whole(tmp_path: Path) -> None:
    write_summary(tmp_path, a_summary())
    write_summary(tmp_path, a_summary(Record("wrong-1", "s", "known", "wrong", culprits=("A",))))
    data = json.loads((tmp_path / "summary.json").read_text())
    assert data["findings"][0]["culprits"] == ["A"]
    assert [path.name for path in tmp_path.iterdir()] == ["summary.json"]


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"summary\.json"):
        write_summary(tmp_path / "file", a_summary())
