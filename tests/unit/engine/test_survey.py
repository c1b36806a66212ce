"""The support table: what each outcome of a node case counts as, and what differs between two tables."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from miscompile.base.errors import UsageError
from miscompile.core.case import Case, Port, Program
from miscompile.core.outcome import Crashed, Outcome, OutOfMemory, Raised, Rejected, TimedOut, Unsupported, Values
from miscompile.core.run import Run
from miscompile.core.tensor import Tensor, tensor
from miscompile.engine.survey import SurveyRow, SurveyStatus, survey
from miscompile.producers.slices.node_cases import NodeCase, node_cases
from miscompile.producers.slices.table import SupportTable, difference, load_table
from miscompile.reports.tables import difference_view, table_view

PORT = Port("y", "float32", (2,))
CASE = Case(Program("onnx", b"", (), (PORT,)), ((),))
ONES = tensor(np.ones(2, np.float32))


def node_case(*, random: bool = False, case: Case | None = CASE) -> NodeCase:
    return NodeCase("test_relu", "Relu", 14, "float32", case, ((ONES,),), 1e-3, 1e-7, random)


class One:
    """A runner with one answer."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        return [self.outcome] * len(runs)


def values(*outputs: Tensor | None) -> Values:
    return Values((outputs,))


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (values(ONES), "pass"),
        (values(tensor(np.array([1, 1.0005], np.float32))), "pass"),
        (values(tensor(np.array([1, 1.5], np.float32))), "wrong"),
        (values(tensor(np.ones(3, np.float32))), "wrong"),
        (values(tensor(np.ones(2, np.float64))), "wrong"),
        (values(None), "wrong"),
        (values(ONES, ONES), "wrong"),
        (Unsupported("compile", "no kernel"), "unsupported"),
        (Rejected("load", "bad model"), "rejected"),
        (Raised("run", "IndexError", "oops"), "error"),
        (Crashed("run", 11), "crash"),
        (TimedOut("compile", 3.0), "hang"),
        (OutOfMemory("run"), "memory"),
    ],
)
def test_an_outcome_has_a_status(outcome: Outcome, status: str) -> None:
    (row,) = survey("toy", [node_case()], One(outcome), "full")
    assert row.status == status
    assert (row.message == "") == (status == "pass")


def test_of_random_results_only_types_are_compared() -> None:
    (row,) = survey("toy", [node_case(random=True)], One(values(tensor(np.zeros(2, np.float32)))), "full")
    assert row.status == "pass"


def test_what_is_no_tensor_is_skipped_and_keeps_its_place() -> None:
    seen: list[int] = []
    cases = [node_case(case=None), node_case(), node_case(case=None)] * 30
    rows = survey("toy", cases, One(values(ONES)), "full", seen.append)
    assert [row.status for row in rows] == ["skip", "pass", "skip"] * 30
    assert seen == [64, 90]


def table(*statuses: SurveyStatus, target: str = "toy") -> SupportTable:
    rows = [SurveyRow(f"test_{place}", "Relu", 14, "float32", status, "why") for place, status in enumerate(statuses)]
    return SupportTable(target, {"toy": "1"}, "full", tuple(asdict(row) for row in rows))


def test_a_table_travels_as_json(tmp_path: Path) -> None:
    known = table("pass", "wrong", "pass")
    assert known.totals == {"pass": 2, "wrong": 1}
    assert known.matrix == {"Relu": {"14": {"float32": {"pass": 2, "wrong": 1}}}}
    path = tmp_path / "toy.json"
    path.write_text(json.dumps(known.as_json()))
    assert load_table(path) == known


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 99}', '{"format": 1}'])
def test_what_is_no_table_is_a_usage_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(UsageError, match="support table"):
        load_table(tmp_path / "bad.json")


def test_a_difference_names_what_changed_only() -> None:
    rows = difference(table("pass", "pass", "wrong"), table("pass", "crash", "pass", "pass"))
    assert [(row["name"], row["before"], row["after"]) for row in rows] == [
        ("test_1", "pass", "crash"),
        ("test_2", "wrong", "pass"),
        ("test_3", "", "pass"),
    ]
    assert difference(table("pass"), table("pass")) == []


def test_tables_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    console = Console(width=120)
    before, after = table("pass", "wrong"), table("crash", "wrong", target="other")
    console.print(table_view(before))
    console.print(difference_view(before, after, difference(before, after)))
    shown = capsys.readouterr().out
    assert "1 pass, 1 wrong" in shown
    assert "float32 1/2" in shown
    assert "1 difference" in shown


@pytest.mark.slow  # builds every node case of onnx
def test_onnx_has_cases_of_every_common_operator() -> None:
    cases = list(node_cases())
    assert len(cases) > 1000
    assert {"Conv", "Relu", "Cast", "LSTM", "Loop"} <= {case.op for case in cases}
    assert all(len(case.case.feeds) == len(case.expected) for case in cases if case.case is not None)
    assert sum(case.case is None for case in cases) < len(cases) / 4
    assert {case.name: case.op for case in cases}["test_relu_expanded_ver18"] == "Relu"
