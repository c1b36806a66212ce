"""The bench of HIRFUZZ as a whole: what it measures, in which order, how it prints, and its command line."""

import json
from io import StringIO
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from miscompile.base.errors import UsageError
from miscompile.bench import broken, failures, hirfuzz
from miscompile.bench.broken import BrokenSeries
from miscompile.bench.diversity import Diversity
from miscompile.bench.failures import FailureSeries
from miscompile.bench.hirfuzz import Options, Results, run
from miscompile.bench.measures import Failure
from miscompile.bench.series import Laboratory
from miscompile.bench.view import hirfuzz_view
from miscompile.cli.main import program
from miscompile.ops.support import Support
from miscompile.producers.hirfuzz.producer import HirfuzzOptions

SMALL = Options(part="diversity", graphs=3, nodes=5, repetitions=2)

FAILED = (
    Failure(3, "wrong", "wrong: output differs", (), "toy:wrong:OperandOrdering"),
    Failure(8, "wrong", "wrong: output differs", (), "toy:wrong:StrengthReduction"),
)


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(program, [str(word) for word in words])


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Play the parts that need workers; note what was measured."""
    seen: list[tuple[str, str]] = []

    def break_some(lab: Laboratory, support: Support, programs: int, watch: object) -> BrokenSeries:
        del support, watch
        seen.append(("disruptive", lab.plan.target))
        return BrokenSeries(lab.plan.target, programs, 4, {"death": 1, "refused": programs - 1}, FAILED[:1], 2, 1.5)

    def test_some(
        lab: Laboratory, options: HirfuzzOptions, support: Support, tests: int, patience: float, watch: object
    ) -> FailureSeries:
        del support, patience, watch
        seen.append((options.guidance, lab.plan.target))
        assert options.nodes == 7
        return FailureSeries(
            lab.plan.target, options.guidance, tests, FAILED, 1, FAILED, 3, (), {"flaky": 4}, 99, (5.0, 6.0)
        )

    monkeypatch.setattr(hirfuzz, "probe_support", lambda plan, target: Support(open=True))
    monkeypatch.setattr(hirfuzz, "make_pool", lambda plan, workers=1: PlayedPool())
    monkeypatch.setattr(broken, "measure", break_some)
    monkeypatch.setattr(failures, "measure", test_some)
    return seen


class PlayedPool:
    """Is opened and closed."""

    def __enter__(self) -> "PlayedPool":
        return self

    def __exit__(self, *_: object) -> None:
        return None


def test_parts_and_targets_come_one_by_one(played: list[tuple[str, str]]) -> None:
    options = Options(("toy", "reference"), "all", graphs=2, nodes=4, repetitions=1, broken=9, tests=5, test_nodes=7)
    steps = list(run(options))
    assert played == [
        (part, target) for target in ("toy", "reference") for part in ("disruptive", "gate", "off")
    ]  # fmt: skip
    assert [(step.diversity is not None, len(step.broken), len(step.failures)) for step in steps] == [
        (True, 0, 0), (True, 1, 0), (True, 1, 1), (True, 1, 2), (True, 2, 2), (True, 2, 3), (True, 2, 4),
    ]  # fmt: skip
    assert [step.seconds for step in steps] == sorted(step.seconds for step in steps)
    data = json.loads(json.dumps(steps[-1].as_json()))
    assert data["options"]["test_nodes"] == 7
    assert data["failures"][0]["unique"] == {"failures": 2, "by_message": 1, "by_trace": 1, "by_signature": 2}
    assert data["failures"][0]["paper"] == {"bugs": 11, "failing_tests": 24, "days": 2}
    assert data["disruptive"][1]["endings"]["death"] == 1


@pytest.mark.parametrize(("part", "measured"), [("disruptive", ["disruptive"]), ("failures", ["gate", "off"])])
def test_only_the_part_that_is_asked_for(part: str, measured: list[str], played: list[tuple[str, str]]) -> None:
    *_, results = run(Options(("toy",), part, test_nodes=7))  # type: ignore[arg-type]
    assert [name for name, _ in played] == measured
    assert results.diversity is None


def test_diversity_needs_no_target_and_the_others_do() -> None:
    *_, results = run(SMALL)
    assert results.diversity is not None
    assert results.versions == {}
    with pytest.raises(UsageError, match="name the compilers"):
        next(run(Options(part="failures")))


def printed(results: Results) -> str:
    console = Console(width=160, file=StringIO())
    console.print(hirfuzz_view(results))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_tables_hold_our_figures_and_the_papers(played: list[tuple[str, str]]) -> None:
    *_, results = run(Options(("toy",), "all", 2, 4, 1, broken=9, tests=5, test_nodes=7))
    text = printed(results)
    assert "more than 5 times" in text
    assert "11 bugs of 24 failing tests" in text
    assert "170 graphs" in text
    assert isinstance(results.diversity, Diversity)
    assert f"{results.diversity.mode('gate').score.mean:,.1f}" in text
    (row,) = [line for line in text.splitlines() if line.startswith("toy") and " gate " in line]
    assert row.split() == ["toy", "gate", "5", "2", "1", "1", "2", "6", "4", "5", "+", "6"]


def test_tables_of_one_part_alone() -> None:
    *_, results = run(SMALL)
    text = printed(results)
    assert "Diversity score" in text
    assert "Failing tests" not in text
    assert "Broken programs" not in text


def test_the_command_prints_json_on_request(tmp_path: Path) -> None:
    words = ("bench", "hirfuzz", "--part", "diversity", "--graphs", "3", "--nodes", "5", "--repetitions", "2")
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
        (("bench", "polyjuice"), "No such command"),
        (("bench", "hirfuzz", "--part", "everything"), "everything"),
        (("bench", "hirfuzz", "--targets", "gcc"), "there is no target 'gcc'"),
        (("bench", "hirfuzz", "--graphs", "0"), "0 is not in the range"),
        (("fuzz", "toy", "--preset", "hirfuzz", "--producer", "sweep"), "leave --producer out"),
        (("fuzz", "toy", "--preset", "magic"), "magic"),
    ],
)
def test_wrong_words_are_usage_errors(words: tuple[str, ...], says: str) -> None:
    result = call(*words)
    assert result.exit_code == 2, result.output
    assert says in result.stderr


def test_bench_is_a_group_with_one_command_for_each_paper() -> None:
    command = program.get_command(click.Context(program), "bench")
    assert isinstance(command, click.Group)
    assert list(command.commands) == ["hirfuzz", "oatest", "opera"]
