"""The tables of OATest as a whole: the order of measuring, the text, and the command line."""

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from played_pools import PlayedPool, with_passes
from rich.console import Console

from evaluation import series
from evaluation.failure_log import SettledFailures
from evaluation.measures import ConfirmedFailure, sample_statistics
from evaluation.oatest import ablations, experiments, splicing
from evaluation.oatest.ablations import Arm, ArmSeries
from evaluation.oatest.experiments import OatestFigures, OatestSettings, run
from evaluation.oatest.libraries import Libraries, PassPair
from evaluation.oatest.splicing import Splicing
from evaluation.oatest.tracing import Traced
from evaluation.oatest.triggers import TriggerRate
from evaluation.oatest.view import oatest_view
from evaluation.program import program
from evaluation.series import SeriesPools
from miscompile.base.errors import UsageError
from miscompile.graph.model import Graph, Node, TensorType, ValueInfo
from miscompile.ops.seed import Seed
from miscompile.ops.support import Support

TRIGGER = TriggerRate(40, 38, 30, 5, 1, {"DeadCode": (20, 10), "DivToMul": (18, 18)})
FAILED = ConfirmedFailure(3, "wrong", "wrong: output differs", (), "toy:wrong:OperandOrdering")
FLOATS = TensorType("float32", (2, 3))
SEED = Seed("s", Graph("g", (ValueInfo("x", FLOATS),), (ValueInfo("y", FLOATS),), (Node("Relu", ("x",), ("y",)),)), 17)


def figures(target: str, syntheses: int, trigger: TriggerRate | None) -> Splicing:
    endings = {"values": syntheses - 2, "refused": 1, "crashed": 1}
    said = {"refused: no Sum of booleans": 1, "crashed: signal 11 < fold": 1}
    return Splicing(
        target, syntheses, syntheses, {}, endings, said, syntheses - 2, 90, 80, 75, 4, 0,
        {"abstract": 60, "bridged": 40}, sample_statistics([1, 2]), sample_statistics([1, 1]), 7, 12.0, 1.0, 3.0,
        trigger,
    )  # fmt: skip


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Play what needs workers; note what was measured."""
    seen: list[str] = []

    def splice(pools: SeriesPools, producer: Traced, count: int, watched: int, watch: object) -> Iterator[Splicing]:
        del watch
        seen.append(f"splicing {pools.plan.target} {count} {watched} {producer.options.mutations}")
        yield figures(pools.plan.target, count // 2, None)
        yield figures(pools.plan.target, count, TRIGGER)

    def ablate(
        pools: SeriesPools,
        arm: Arm,
        options: object,
        support: object,
        tests: int,
        watched: int,
        patience: float,
        watch: object,
    ) -> ArmSeries:
        del options, support, watched, patience, watch
        seen.append(f"{arm.name} {pools.plan.target}")
        settled = SettledFailures((FAILED,) * (arm.name == "own"), 1, (), 2, (), {"flaky": 3})
        counts = (tests, {"values": tests}, tests, 6, 20, 40)
        return ArmSeries(pools.plan.target, arm.name, arm.group, 9, 2.5, 8, *counts, settled, TRIGGER, (1.0, 2.0, 3.0))

    def cut(options: OatestSettings, plan: object, support: Support, watch: object) -> Libraries:
        del options, plan, support, watch
        return Libraries("toy", "1", (PassPair("DeadCode", "block", SEED, SEED, SEED),), 5, {})

    monkeypatch.setattr("evaluation.series.probe_support", lambda plan, target: Support(open=True))
    monkeypatch.setattr(series, "make_pool", lambda plan, workers=1: PlayedPool(with_passes(lambda _: [])))
    monkeypatch.setattr(splicing, "measure", splice)
    monkeypatch.setattr(ablations, "measure", ablate)
    monkeypatch.setattr(experiments, "_libraries", cut)
    return seen


ARMS = ["own", "block", "subgraph", "whole", "random", "tests", "alone"]


def test_splicing_target_by_target_and_figures_replace_earlier_ones(played: list[str]) -> None:
    steps = list(run(OatestSettings("splicing", ("toy", "reference"), 100, 50, mutations=0.0)))
    assert played == ["splicing toy 100 50 0.0", "splicing reference 100 50 0.0"]
    assert [[one.syntheses for one in step.splicing] for step in steps] == [[50], [100], [100, 50], [100, 100]]
    assert [step.seconds for step in steps] == sorted(step.seconds for step in steps)
    data = json.loads(json.dumps(steps[-1].as_json()))
    assert data["table"] == "oatest-splicing"
    assert data["settings"]["watched"] == 50
    assert data["splicing"][0]["trigger"]["rate"] == pytest.approx(30 / 38)
    assert not steps[-1].ablation


def test_ablation_target_by_target_and_setting_by_setting(played: list[str]) -> None:
    steps = list(run(OatestSettings("ablation", ("toy", "reference"), tests=10)))
    assert played == [f"{arm} {target}" for target in ("toy", "reference") for arm in ARMS]
    assert [(len(step.libraries), len(step.ablation)) for step in steps[:9]] == [
        (1, 0), *((1, count) for count in range(1, 8)), (2, 7),
    ]  # fmt: skip
    assert not steps[-1].splicing
    data = json.loads(json.dumps(steps[-1].as_json()))
    assert data["ratios"]["toy"]["block"] == {"signatures": 0.0, "sets": 1.0, "pairs": 1.0, "passes": 1.0}
    assert data["libraries"]["toy"]["operators"] == {"block": 1.0, "subgraph": 1.0, "whole": 1.0}


def test_there_must_be_targets_and_pairs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name the compilers"):
        next(run(OatestSettings("splicing")))
    with pytest.raises(UsageError, match="there are no pairs"):
        next(run(OatestSettings("ablation", ("toy",), pairs=str(tmp_path))))


def printed(results: OatestFigures) -> str:
    console = Console(width=200, file=StringIO())
    console.print(oatest_view(results))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_tables_hold_our_figures_and_the_papers(played: list[str]) -> None:
    assert not played
    *_, spliced = run(OatestSettings("splicing", ("toy",), 100, 50))
    *_, ablated = run(OatestSettings("ablation", ("toy",), tests=10))
    text = printed(spliced) + printed(ablated)
    for told in (
        "91.4 %",
        "75.5 %",
        "14 + 8 (0.52)",
        "7 + 3 (0.24)",
        "78.9 %",
        "75.0 %",
        "operators: block 1.0",
        "refused: no Sum of booleans",
    ):
        assert told in text
    (row,) = [line for line in text.splitlines() if line.startswith("toy") and " 98.0 %" in line]
    assert row.split()[:3] == ["toy", "100", "98.0"]
    bugs, passes = [line for line in text.splitlines() if line.startswith("always blocks")]
    assert "0 (0.00)" in bugs
    assert "20 (1.00)" in passes
    assert "Bugs of toy" in printed(ablated)
    assert "Bugs of toy" not in printed(spliced)


def test_patterns_are_cut_from_as_many_node_cases_as_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [f"case {number}" for number in range(50)]
    monkeypatch.setattr(experiments, "node_programs", whole.copy)

    def drawn(cases: int | None, seed: int = 0) -> list[object]:
        return list(experiments.node_programs_of(OatestSettings("ablation", ("toy",), cases=cases, seed=seed)))

    assert drawn(None) == whole
    assert drawn(0) == []
    assert sorted(map(str, drawn(80))) == sorted(whole)
    assert len(set(drawn(12)) & set(whole)) == 12
    assert drawn(12) == drawn(12)
    assert drawn(12) != drawn(12, seed=1)


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(program, [str(word) for word in words])


def test_the_command_prints_and_writes(played: list[str], tmp_path: Path) -> None:
    file = tmp_path / "new" / "figures.json"
    words = ("oatest-splicing", "--targets", "toy", "--syntheses", "10", "--seed", "0", "--workers", "1")
    result = call(*words, "--json", file)
    assert result.exit_code == 0, result.output
    assert "Trigger rate" in result.stdout
    assert "oatest-splicing, seed 0" in result.stderr
    assert json.loads(file.read_text("utf-8"))["splicing"][0]["syntheses"] == 10
    data = json.loads(call(*words, "--json", "-").stdout)
    assert data["table"] == "oatest-splicing"
    assert played == ["splicing toy 10 1000 0.3"] * 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("oatest-splicing", "--part", "everything"), "No such option"),
        (("oatest-splicing", "--targets", "gcc"), "there is no target 'gcc'"),
        (("oatest-splicing", "--syntheses", "0"), "0 is not in the range"),
        (("oatest-ablation", "--mutations", "2"), "2.0 is not in the range"),
        (("oatest-ablation", "--pairs", "/nowhere/at/all"), "does not exist"),
    ],
)
def test_wrong_words_are_usage_errors(words: tuple[str, ...], says: str) -> None:
    result = call(*words)
    assert result.exit_code == 2, result.output
    assert says in result.stderr


def test_a_folder_without_pairs_is_a_usage_error(tmp_path: Path) -> None:
    result = call("oatest-ablation", "--targets", "toy", "--pairs", tmp_path)
    assert result.exit_code == 2, result.output
    assert "harvest" in result.stderr
