"""The bench of OATest as a whole: what it measures, in which order, how it prints, and its command line."""

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from played_pools import PlayedPool, firing
from rich.console import Console

from miscompile.base.errors import UsageError
from miscompile.bench import ablations, hirfuzz, oatest, splicing
from miscompile.bench.ablations import Arm, ArmSeries
from miscompile.bench.failure_log import Settled
from miscompile.bench.libraries import Cut, Libraries
from miscompile.bench.measures import Failure, spread
from miscompile.bench.oatest import Options, Results, run
from miscompile.bench.oatest_view import oatest_view
from miscompile.bench.series import Laboratory
from miscompile.bench.splicing import Splicing
from miscompile.bench.tracing import Traced
from miscompile.bench.triggers import Trigger
from miscompile.cli.main import program
from miscompile.graph.model import Graph, Node, TensorType, ValueInfo
from miscompile.ops.seed import Seed
from miscompile.ops.support import Support

TRIGGER = Trigger(40, 38, 30, 5, 1, {"DeadCode": (20, 10), "DivToMul": (18, 18)})
FAILED = Failure(3, "wrong", "wrong: output differs", (), "toy:wrong:OperandOrdering")
FLOATS = TensorType("float32", (2, 3))
SEED = Seed("s", Graph("g", (ValueInfo("x", FLOATS),), (ValueInfo("y", FLOATS),), (Node("Relu", ("x",), ("y",)),)), 17)


def figures(target: str, syntheses: int, trigger: Trigger | None) -> Splicing:
    endings = {"values": syntheses - 2, "refused": 1, "crashed": 1}
    said = {"refused: no Sum of booleans": 1, "crashed: signal 11 < fold": 1}
    return Splicing(
        target, syntheses, syntheses, {}, endings, said, syntheses - 2, 90, 80, 75, 4, 0,
        {"abstract": 60, "bridged": 40}, spread([1, 2]), spread([1, 1]), 7, 12.0, 1.0, 3.0, trigger,
    )  # fmt: skip


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Play what needs workers; note what was measured."""
    seen: list[str] = []

    def splice(lab: Laboratory, producer: Traced, count: int, watched: int, watch: object) -> Iterator[Splicing]:
        del watch
        seen.append(f"splicing {lab.plan.target} {count} {watched} {producer.options.mutations}")
        yield figures(lab.plan.target, count // 2, None)
        yield figures(lab.plan.target, count, TRIGGER)

    def ablate(
        lab: Laboratory,
        arm: Arm,
        options: object,
        support: object,
        tests: int,
        watched: int,
        patience: float,
        watch: object,
    ) -> ArmSeries:
        del options, support, watched, patience, watch
        seen.append(f"{arm.name} {lab.plan.target}")
        settled = Settled((FAILED,) * (arm.name == "own"), 1, (), 2, (), {"flaky": 3})
        counts = (tests, {"values": tests}, tests, 6, 20, 40)
        return ArmSeries(lab.plan.target, arm.name, arm.group, 9, 2.5, 8, *counts, settled, TRIGGER, (1.0, 2.0, 3.0))

    def cut(options: Options, plan: object, support: Support, watch: object) -> Libraries:
        del options, plan, support, watch
        return Libraries("toy", "1", (Cut("DeadCode", "block", SEED, SEED, SEED),), 5, {})

    monkeypatch.setattr(oatest, "probe_support", lambda plan, target: Support(open=True))
    monkeypatch.setattr(hirfuzz, "make_pool", lambda plan, workers=1: PlayedPool(firing(lambda _: [])))
    monkeypatch.setattr(splicing, "measure", splice)
    monkeypatch.setattr(ablations, "measure", ablate)
    monkeypatch.setattr(oatest, "_libraries", cut)
    return seen


ARMS = ["own", "block", "subgraph", "whole", "random", "tests", "alone"]


def test_parts_and_targets_come_one_by_one_and_figures_replace_earlier_ones(played: list[str]) -> None:
    steps = list(run(Options(("toy", "reference"), "all", 100, 50, 10, mutations=0.0)))
    assert played == [
        name
        for target in ("toy", "reference")
        for name in [f"splicing {target} 100 50 0.0", *(f"{arm} {target}" for arm in ARMS)]
    ]
    assert [(len(step.splicing), len(step.libraries), len(step.ablation)) for step in steps[:11]] == [
        (1, 0, 0), (1, 0, 0), (1, 1, 0), *((1, 1, count) for count in range(1, 8)), (2, 1, 7),
    ]  # fmt: skip
    assert [one.syntheses for one in steps[-1].splicing] == [100, 100]
    assert [step.seconds for step in steps] == sorted(step.seconds for step in steps)
    data = json.loads(json.dumps(steps[-1].as_json()))
    assert data["options"]["watched"] == 50
    assert data["splicing"][0]["trigger"]["rate"] == pytest.approx(30 / 38)
    assert data["ratios"]["toy"]["block"] == {"signatures": 0.0, "sets": 1.0, "pairs": 1.0, "passes": 1.0}
    assert data["libraries"]["toy"]["operators"] == {"block": 1.0, "subgraph": 1.0, "whole": 1.0}


@pytest.mark.parametrize(("part", "count"), [("splicing", 1), ("ablation", 7)])
def test_only_the_part_that_is_asked_for(part: str, count: int, played: list[str]) -> None:
    *_, results = run(Options(("toy",), part))  # type: ignore[arg-type]
    assert len(played) == count
    assert bool(results.splicing) == (part == "splicing")


def test_there_must_be_targets_and_pairs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name the compilers"):
        next(run(Options()))
    with pytest.raises(UsageError, match="there are no pairs"):
        next(run(Options(("toy",), pairs=str(tmp_path))))


def printed(results: Results) -> str:
    console = Console(width=200, file=StringIO())
    console.print(oatest_view(results))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_tables_hold_our_figures_and_the_papers(played: list[str]) -> None:
    assert not played
    *_, results = run(Options(("toy",), "all", 100, 50, 10))
    text = printed(results)
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
    first = next(run(Options(("toy",), "splicing", 100, 50, 10)))
    assert "Ablation" not in printed(first)


def test_patterns_are_cut_from_as_many_node_cases_as_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [f"case {number}" for number in range(50)]
    monkeypatch.setattr(oatest, "node_programs", whole.copy)

    def drawn(cases: int | None, seed: int = 0) -> list[object]:
        return list(oatest.node_programs_of(Options(("toy",), cases=cases, seed=seed)))

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
    words = ("bench", "oatest", "--targets", "toy", "--syntheses", "10", "--seed", "0", "--workers", "1")
    result = call(*words, "--part", "splicing", "--json", file)
    assert result.exit_code == 0, result.output
    assert "Trigger rate" in result.stdout
    assert "bench oatest, seed 0" in result.stderr
    assert json.loads(file.read_text("utf-8"))["splicing"][0]["syntheses"] == 10
    data = json.loads(call(*words, "--part", "splicing", "--json", "-").stdout)
    assert data["bench"] == "oatest"
    assert played == ["splicing toy 10 1000 0.3"] * 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--part", "everything"), "everything"),
        (("--targets", "gcc"), "there is no target 'gcc'"),
        (("--syntheses", "0"), "0 is not in the range"),
        (("--mutations", "2"), "2.0 is not in the range"),
        (("--pairs", "/nowhere/at/all"), "does not exist"),
    ],
)
def test_wrong_words_are_usage_errors(words: tuple[str, ...], says: str) -> None:
    result = call("bench", "oatest", *words)
    assert result.exit_code == 2, result.output
    assert says in result.stderr


def test_a_folder_without_pairs_is_a_usage_error(tmp_path: Path) -> None:
    result = call("bench", "oatest", "--targets", "toy", "--pairs", tmp_path)
    assert result.exit_code == 2, result.output
    assert "harvest" in result.stderr
