"""The tables of HIRFUZZ as a whole: the order of measuring, the text, and the command line."""

import json
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from evaluation import series
from evaluation.failure_log import SettledFailures
from evaluation.hirfuzz import failures, invalid
from evaluation.hirfuzz.diversity import Diversity
from evaluation.hirfuzz.experiments import HirfuzzFigures, HirfuzzSettings, run
from evaluation.hirfuzz.failures import FailureSeries
from evaluation.hirfuzz.invalid import InvalidSeries
from evaluation.hirfuzz.view import hirfuzz_view
from evaluation.measures import ConfirmedFailure
from evaluation.program import program
from evaluation.series import SeriesPools
from miscompile.base.errors import UsageError
from miscompile.cli.main import program as miscompile
from miscompile.ops.support import Support
from miscompile.producers.hirfuzz.producer import HirfuzzOptions

SMALL = HirfuzzSettings("diversity", graphs=3, nodes=5, repetitions=2)

FAILED = (
    ConfirmedFailure(3, "wrong", "wrong: output differs", (), "toy:wrong:OperandOrdering"),
    ConfirmedFailure(8, "wrong", "wrong: output differs", (), "toy:wrong:StrengthReduction"),
)


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(program, [str(word) for word in words])


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Play the parts that need workers; note what was measured."""
    seen: list[tuple[str, str]] = []

    def break_some(pools: SeriesPools, support: Support, programs: int, watch: object) -> InvalidSeries:
        del support, watch
        seen.append(("invalid", pools.plan.target))
        return InvalidSeries(pools.plan.target, programs, 4, {"death": 1, "refused": programs - 1}, FAILED[:1], 2, 1.5)

    def test_some(
        pools: SeriesPools, options: HirfuzzOptions, support: Support, tests: int, patience: float, watch: object
    ) -> FailureSeries:
        del support, patience, watch
        seen.append((options.guidance, pools.plan.target))
        assert options.nodes == 7
        settled = SettledFailures(FAILED, 1, FAILED, 3, (), {"flaky": 4})
        return FailureSeries(pools.plan.target, options.guidance, tests, settled, 99, (5.0, 6.0))

    monkeypatch.setattr("evaluation.series.probe_support", lambda plan, target: Support(open=True))
    monkeypatch.setattr(series, "make_pool", lambda plan, workers=1: PlayedPool())
    monkeypatch.setattr(invalid, "measure", break_some)
    monkeypatch.setattr(failures, "measure", test_some)
    return seen


class PlayedPool:
    """Is opened and closed."""

    def __enter__(self) -> "PlayedPool":
        return self

    def __exit__(self, *_: object) -> None:
        return None


def test_invalid_programs_target_by_target(played: list[tuple[str, str]]) -> None:
    steps = list(run(HirfuzzSettings("invalid", ("toy", "reference"), programs=9)))
    assert played == [("invalid", "toy"), ("invalid", "reference")]
    assert [[one.target for one in step.invalid] for step in steps] == [["toy"], ["toy", "reference"]]
    assert [step.seconds for step in steps] == sorted(step.seconds for step in steps)
    data = json.loads(json.dumps(steps[-1].as_json()))
    assert data["table"] == "hirfuzz-invalid"
    assert data["settings"]["programs"] == 9
    assert data["invalid"][1]["endings"]["death"] == 1
    assert data["failures"] == []


def test_failures_with_and_without_guidance_target_by_target(played: list[tuple[str, str]]) -> None:
    steps = list(run(HirfuzzSettings("failures", ("toy", "reference"), tests=5, test_nodes=7)))
    assert played == [(mode, target) for target in ("toy", "reference") for mode in ("gate", "off")]
    assert [len(step.failures) for step in steps] == [1, 2, 3, 4]
    data = json.loads(json.dumps(steps[-1].as_json()))
    assert data["settings"]["test_nodes"] == 7
    assert data["failures"][0]["unique"] == {"failures": 2, "by_message": 1, "by_trace": 1, "by_signature": 2}
    assert data["failures"][0]["paper"] == {"bugs": 11, "failing_tests": 24, "days": 2}
    assert data["diversity"] is None


def test_diversity_needs_no_target_and_the_others_do() -> None:
    *_, results = run(SMALL)
    assert results.diversity is not None
    assert results.versions == {}
    with pytest.raises(UsageError, match="name the compilers"):
        next(run(HirfuzzSettings("failures")))


def printed(results: HirfuzzFigures) -> str:
    console = Console(width=160, file=StringIO())
    console.print(hirfuzz_view(results))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_tables_hold_our_figures_and_the_papers(played: list[tuple[str, str]]) -> None:
    assert not played
    *_, diverse = run(SMALL)
    text = printed(diverse)
    assert "more than 5 times" in text
    assert isinstance(diverse.diversity, Diversity)
    assert f"{diverse.diversity.mode('gate').score.mean:,.1f}" in text
    *_, broken = run(HirfuzzSettings("invalid", ("toy",), programs=9))
    assert "170 graphs" in printed(broken)
    *_, failing = run(HirfuzzSettings("failures", ("toy",), tests=5, test_nodes=7))
    text = printed(failing)
    assert "11 bugs of 24 failing tests" in text
    (row,) = [line for line in text.splitlines() if line.startswith("toy") and " gate " in line]
    assert row.split() == ["toy", "gate", "5", "2", "1", "1", "2", "6", "4", "5", "+", "6"]


def test_tables_of_one_part_alone() -> None:
    *_, results = run(SMALL)
    text = printed(results)
    assert "Diversity score" in text
    assert "Failing tests" not in text
    assert "Invalid programs" not in text


def test_the_command_prints_json_on_request(tmp_path: Path) -> None:
    words = ("hirfuzz-diversity", "--graphs", "3", "--nodes", "5", "--repetitions", "2")
    result = call(*words, "--seed", "0", "--workers", "1", "--json", "-")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert "seed 0" in result.stderr
    file = tmp_path / "new" / "figures.json"
    other = call(*words, "--seed", "0", "--workers", "1", "--json", file)
    assert "Diversity score" in other.stdout
    written = json.loads(file.read_text("utf-8"))
    for one in (data, written):
        one.pop("seconds")
        for mode in one["diversity"]["modes"]:
            mode.pop("seconds")
    assert data == written


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("polyjuice",), "No such command"),
        (("hirfuzz-diversity", "--part", "everything"), "No such option"),
        (("hirfuzz-failures", "--targets", "gcc"), "there is no target 'gcc'"),
        (("hirfuzz-diversity", "--graphs", "0"), "0 is not in the range"),
    ],
)
def test_wrong_words_are_usage_errors(words: tuple[str, ...], says: str) -> None:
    result = call(*words)
    assert result.exit_code == 2, result.output
    assert says in result.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [(("--producer", "sweep"), "leave --producer out"), ((), "magic")],
)
def test_presets_that_cannot_be_meant(words: tuple[str, ...], says: str) -> None:
    preset = "hirfuzz" if words else "magic"
    result = CliRunner().invoke(miscompile, ["fuzz", "toy", "--preset", preset, *words])
    assert result.exit_code == 2, result.output
    assert says in result.stderr
