"""The list of public bugs, and which findings may be one of them."""

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from evaluation.bugs.page import CLASSES
from evaluation.kept_campaigns import SUMMARY
from evaluation.known import campaigns
from evaluation.known.campaigns import (
    BugOutcome,
    KnownFigures,
    KnownSettings,
    may_be,
    operators_to_ask_for,
    with_operators,
)
from evaluation.known.listed import FILE, MendedBug, listed, of
from evaluation.known.migrated import MigrationFigures, MigrationSettings, compared, of_one_operator
from evaluation.known.view import known_view, migrated_view
from evaluation.program import program
from miscompile.base.errors import UsageError
from miscompile.base.versions import order
from miscompile.migration.results import ResultRow
from miscompile.targets.registry import CATALOGUE

BUGS = listed()
BUG = MendedBug(
    "onnxruntime", "https://github.com/microsoft/onnxruntime/issues/7", "1.0.0", "1.1.0", "crash", "kernel", "Mod",
    "It dies.", ("Mod", "Add"), True,
)  # fmt: skip


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_is_described_wholly(bug: MendedBug) -> None:
    assert bug.target in CATALOGUE.built_in
    assert bug.link.startswith("https://github.com/")
    assert bug.kind in CLASSES
    assert order(bug.has_it) < order(bug.fixed_in)
    assert bug.cause.endswith(".")
    assert bug.operators


def test_a_bug_is_listed_once_and_those_with_a_script_have_one() -> None:
    links = [bug.link for bug in BUGS]
    assert len(links) == len(set(links)) >= 40
    scripts = {file.stem for file in (FILE.parent / "scripts").glob("*.py")}
    assert {bug.name.replace("#", "-") for bug in BUGS if bug.shown} == scripts


def test_bugs_of_one_target_and_some_releases() -> None:
    assert {bug.target for bug in of(BUGS, "openvino", ())} == {"openvino"}
    assert [bug.has_it for bug in of((BUG,), "onnxruntime", ("1.0.0",))] == ["1.0.0"]
    assert of((BUG,), "onnxruntime", ("1.1.0",)) == []


def test_a_finding_may_be_a_bug_if_it_has_all_operators_of_the_trigger() -> None:
    assert may_be(BUG, frozenset({"Add", "Mod", "Neg"}))
    assert not may_be(BUG, frozenset({"Mod"}))


def test_a_focused_campaign_is_given_the_operators_that_the_generator_has() -> None:
    assert operators_to_ask_for(replace(BUG, operators=("Constant", "Add"))) == ("Add",)
    assert operators_to_ask_for(replace(BUG, operators=("Unique",))) == ("Unique",)


@pytest.mark.parametrize(
    ("focused", "folders"),
    [(False, ["onnxruntime-1.0.0"] * 2), (True, ["onnxruntime-1.0.0-Mod-Add", "onnxruntime-1.0.0-Neg"])],
)
def test_a_focused_campaign_has_the_operators_of_one_bug(
    focused: bool, folders: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[str, tuple[str, ...]]] = []
    read: list[str] = []

    def campaign(target: str, out: Path, seconds: float, seed: int, workers: int, words: tuple[str, ...]) -> None:
        assert (target, seconds, seed, workers) == ("onnxruntime==1.0.0", 60.0, 0, 1)
        made.append((out.name, tuple(words)))
        out.mkdir()
        (out / SUMMARY).touch()

    def outcome(bug: MendedBug, out: Path) -> BugOutcome:
        read.append(out.name)
        return BugOutcome(bug, 1, 0, 0, ())

    monkeypatch.setattr(campaigns, "called", lambda words: "")
    monkeypatch.setattr(campaigns, "run_campaign", campaign)
    monkeypatch.setattr(campaigns, "_outcome", outcome)
    bugs = (BUG, replace(BUG, operators=("Neg",)))
    figures = list(campaigns.run(KnownSettings(tmp_path, bugs, 60.0, 0, 1, focused)))
    assert [one.bug for one in figures[-1].outcomes] == list(bugs)
    assert read == folders
    assert [name for name, _ in made] == list(dict.fromkeys(folders))
    assert [words for _, words in made] == ([("--ops", "Mod,Add"), ("--ops", "Neg")] if focused else [()])


def test_a_campaign_that_does_not_start_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def campaign(target: str, out: Path, seconds: float, seed: int, workers: int, words: tuple[str, ...]) -> None:
        if "Abs" in words:
            raise UsageError("there is no operator 'Abs'")
        out.mkdir()

    monkeypatch.setattr(campaigns, "called", lambda words: "")
    monkeypatch.setattr(campaigns, "run_campaign", campaign)
    monkeypatch.setattr(campaigns, "_outcome", lambda bug, out: BugOutcome(bug, 1))
    bugs = (replace(BUG, operators=("Abs",)), BUG)
    figures = list(campaigns.run(KnownSettings(tmp_path, bugs, 60.0, 0, 1, focused=True)))
    assert [(one.tests, one.not_run) for one in figures[-1].outcomes] == [(0, "there is no operator 'Abs'"), (1, "")]


def test_only_operators_of_onnx_can_be_given_to_a_campaign() -> None:
    assert with_operators([BUG, replace(BUG, operators=("triangular_solve",)), replace(BUG, operators=())]) == [BUG]


def test_the_table_counts_bugs_with_candidates() -> None:
    outcomes = (
        BugOutcome(BUG, 1000, 9, 2, (("death-0a", "s"),)),
        BugOutcome(BUG, 1000, 9, 2, ()),
        BugOutcome(BUG, not_run="the release is gone"),
    )
    figures = KnownFigures(KnownSettings(Path(), (BUG,), 60.0, 0, 1), outcomes)
    console = Console(width=120, record=True, file=StringIO())
    console.print(known_view(figures))
    text = console.export_text()
    assert "onnxruntime#7" in text
    assert "death-0a" in text
    assert "1 of 2 bugs have candidates" in text
    assert "onnxruntime#7 was not run: the release is gone" in text
    assert figures.as_json()["bugs"][0]["name"] == "onnxruntime#7"


def test_a_release_without_bugs_is_a_clear_error(tmp_path: Path) -> None:
    result = CliRunner().invoke(program, ["known", str(tmp_path), "--releases", "0.1"])
    assert result.exit_code == 2
    assert "no bug of onnxruntime is listed for 0.1" in result.output


def test_instances_that_fail_and_are_mended_are_candidates() -> None:
    def row(digest: str, status: str, kind: str = "", message: str = "") -> ResultRow:
        return ResultRow(digest, "Mod", "onnxruntime", status, kind=kind, message=message)

    before = [row("a", "finding", "death", "x"), row("b", "finding", "death", "x"), row("c", "finding", "wrong", "y"),
              row("d", "pass"), row("e", "finding", "error", "z"), row("f", "random"),
              row("g", "unsupported")]  # fmt: skip
    after = [
        row("a", "pass"),
        row("b", "pass"),
        row("c", "finding", "wrong", "y"),
        row("d", "finding"),
        row("e", "unsupported"),
        row("g", "pass"),
    ]
    one = compared(BUG, "tests", before, after)
    assert (one.ran, one.failed, one.taken, one.mended) == (6, 4, 1, (("death", "x", 2),))
    figures = MigrationFigures(MigrationSettings(Path(), (BUG,), (), 1, 30.0), (one, compared(BUG, "near", [], [])))
    console = Console(width=140, record=True, file=StringIO())
    console.print(migrated_view(figures))
    text = console.export_text()
    assert "tests: 1 of 1 bugs have candidates" in text
    assert "near: 0 of 1 bugs have candidates" in text


def test_bugs_of_one_operator_are_those_of_an_onnx_model() -> None:
    assert of_one_operator([BUG]) == []
    assert {bug.operators[0] for bug in of_one_operator(BUGS)} >= {"AveragePool", "GatherND", "Squeeze"}
    assert "pad" not in {bug.operators[0] for bug in of_one_operator(BUGS)}


def test_migrations_to_a_release_without_bugs_are_a_clear_error(tmp_path: Path) -> None:
    archive = tmp_path / "tests.jsonl.gz"
    archive.touch()
    words = ["known-operators", str(tmp_path), str(archive), "--targets", "tvm", "--releases", "0.1"]
    result = CliRunner().invoke(program, words)
    assert result.exit_code == 2
    assert "no bug of one operator is listed for tvm, 0.1" in result.output
