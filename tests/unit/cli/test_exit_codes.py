"""Exit code 0 needs a test that could have failed."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from miscompile.cli.exit_codes import FINDINGS, NOTHING, UNTESTED, code_of, code_of_all
from miscompile.cli.main import program
from miscompile.core.events import MODEL_JUDGED, MODEL_TESTS, MODEL_UNDECIDED, UNDECIDED
from miscompile.findings.store import Record
from miscompile.graph.emit import to_program
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.reports.summary import Summary


def a_summary(tests: int, unsupported: int = 0, *records: Record, model: str = "", **counters: int) -> Summary:
    named = {name.replace("_", " "): value for name, value in counters.items()}
    return Summary("toy", 0, tests, 2.0, 5.0, 0, unsupported, 0, 0, 0, records, counters=named, model=model)


@pytest.mark.parametrize(
    ("summary", "code", "reason"),
    [
        (a_summary(10, 9), NOTHING, ""),
        (a_summary(0), UNTESTED, "no test ended"),
        (a_summary(10, 10), UNTESTED, "10 unsupported"),
        (a_summary(0, 0, Record("w", "s", "pending", "wrong")), FINDINGS, "no test ended"),
        (a_summary(10, 10, model="m.onnx", **{MODEL_TESTS: 4, MODEL_JUDGED: 0}), UNTESTED, "10 unsupported"),
    ],
)
def test_a_run_without_a_verdict_is_no_all_clear(summary: Summary, code: int, reason: str) -> None:
    assert code_of(summary) == code
    assert reason in summary.untested
    assert bool(summary.untested) == bool(reason)


@pytest.mark.parametrize(
    ("summaries", "code"),
    [
        ([a_summary(10), a_summary(0)], NOTHING),
        ([a_summary(0), None], UNTESTED),
        ([None], UNTESTED),
        ([a_summary(10), a_summary(10, 0, Record("w", "s", "confirmed", "wrong"))], FINDINGS),
    ],
)
def test_several_targets_are_an_all_clear_if_one_was_tested(summaries: list[Summary | None], code: int) -> None:
    assert code_of_all(summaries) == code


@pytest.mark.parametrize(
    ("summary", "told"),
    [
        (a_summary(10, 4, model="m.onnx"), "no test of the model as a whole ended"),
        (
            a_summary(10, 4, model="m.onnx", **{MODEL_TESTS: 4, f"{MODEL_UNDECIDED}unsupported": 4}),
            "none of 4 tests of the model as a whole could be judged: 4 unsupported",
        ),
        (a_summary(10, 4, model="m.onnx", **{MODEL_TESTS: 4, MODEL_JUDGED: 1}), ""),
        (a_summary(10, 10, model="m.onnx", **{MODEL_TESTS: 4}), ""),
        (a_summary(10, 4), ""),
    ],
)
def test_a_check_says_when_only_slices_of_the_model_were_tested(summary: Summary, told: str) -> None:
    assert summary.only_slices.startswith(told)
    assert (code_of(summary) == UNTESTED) == bool(told or summary.untested), "slices are no all-clear for their model"
    assert bool(summary.only_slices) == bool(told) == bool(summary.as_json()["only_slices"])


def test_undecided_tests_are_not_judged() -> None:
    summary = Summary("toy", 0, 3, 2.0, 5.0, 1, 1, 0, 0, 0, (), counters={f"{UNDECIDED}it is unstable": 1})
    assert summary.judged == 0
    assert summary.as_json()["untested"] == summary.untested != ""


def saved(folder: Path, nodes: tuple[Node, ...], output: str, shape: tuple[int, ...]) -> Path:
    kind = TensorType("float32", shape)
    graph = Graph("g", (ValueInfo("x", kind),), (ValueInfo(output, kind),), nodes)
    path = folder / "model.onnx"
    path.write_bytes(to_program(Model(graph, {"": 18})).payload)
    return path


def test_an_empty_graph_is_nothing_tested(tmp_path: Path) -> None:
    path = saved(tmp_path, (), "x", (2,))
    result = CliRunner().invoke(program, ["check", str(path), "--target", "toy", "--out", str(tmp_path / "out")])
    assert result.exit_code == UNTESTED, result.output
    assert "has no operator" in result.stderr


def test_inputs_that_no_machine_can_feed_are_a_usage_error(tmp_path: Path) -> None:
    path = saved(tmp_path, (Node("Relu", ("x",), ("y",)),), "y", (75, 1000, 1000, 250))
    result = CliRunner().invoke(program, ["check", str(path), "--target", "toy", "--out", str(tmp_path / "out")])
    assert result.exit_code == 2, result.output
    assert "the input 'x' has 75,000,000,000 bytes" in result.stderr
    assert not (tmp_path / "out").exists()
