"""Plan files: what they may say, which line an error names, and that the command line counts more."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from miscompile.base.errors import UsageError
from miscompile.cli.main import program
from miscompile.cli.plan_file import plan_text, read_plan
from miscompile.cli.verbs import fuzz
from miscompile.engine import coordinator
from miscompile.engine.arms import DIFFERENTIAL, arms_of
from miscompile.engine.plan import Plan

GOOD = """\
# every night
targets = ["toy"]
time = "2h"
seed = 7
workers = 1
ops = ["Add", "Conv"]
check = "levels,exact"
keep-passes = true
guidance = false
motifs = 0.3
limit-memory = "2G"
transform = ["order", "resist{classes=fusion}"]
"""


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(program, [str(word) for word in words])


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(text, "utf-8")
    return path


def planned(monkeypatch: pytest.MonkeyPatch, *words: str | Path) -> Plan:
    """Return the plan with which the command begins a campaign."""
    seen: list[Plan] = []

    def fuzz(plan: Plan, _: object) -> None:
        seen.append(plan)
        raise KeyboardInterrupt

    monkeypatch.setattr(coordinator, "fuzz", fuzz)
    result = call("fuzz", *words)
    assert seen, result.output
    return seen[0]


def test_the_options_of_a_file_are_those_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    of_file = planned(monkeypatch, "--plan", written(tmp_path, GOOD), "--out", out)
    words = (
        "--time", "2h", "--seed", "7", "--workers", "1", "--ops", "Add,Conv", "--check", "levels,exact",
        "--keep-passes", "--no-guidance", "--motifs", "0.3", "--limit-memory", "2G", "--transform", "order",
        "--transform", "resist{classes=fusion}",
    )  # fmt: skip
    assert of_file == planned(monkeypatch, "toy", *words, "--out", out)
    assert (of_file.seconds, of_file.ops, of_file.steer, of_file.guidance) == (7200.0, ("Add", "Conv"), False, False)


def test_the_command_line_counts_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, GOOD)
    plan = planned(monkeypatch, "onnxruntime", "--plan", path, "--time", "5m", "--guidance", "--out", tmp_path / "out")
    assert (plan.target, plan.seconds, plan.guidance, plan.seed) == ("onnxruntime", 300.0, True, 7)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('targets = "toy"\n\ntime = "soon"\n', 3, "time: 'soon' is no duration"),
        ('targets = "toy"\ncolour = 3\n', 2, "colour: there is no such option; there are: targets, check"),
        ('targets = "toy"\nresume = true\n', 2, "resume: there is no such option"),
        ('targets = "toy"\n\ntime =\n', 3, "this is no TOML"),
        ('targets = "toy"\ntime = 1\ntime = 2\n', 3, "this is no TOML"),
        ('targets = ["toy", "gcc"]\n', 1, "targets: there is no target 'gcc'"),
        ('targets = "toy"\ntests = 0\n', 2, "tests: 0 is not in the range"),
        ('targets = "toy"\nseed = "x"\n', 2, "seed: 'x' is not a valid integer"),
        ('targets = "toy"\nmotifs = true\n', 2, "motifs: this is not true or false"),
        ('targets = "toy"\nkeep-passes = "yes"\n', 2, "keep-passes: this is true or false"),
        ('targets = "toy"\nkeep-passes = [true]\n', 2, "keep-passes: this is true or false"),
        ('targets = "toy"\ntime = ["1h"]\n', 2, "time: this is one value, not a list"),
        ('targets = "toy"\n[check]\nlevels = 1\n', 2, "check: give text, a number, true or false"),
        ('targets = "toy"\nops = []\n', 2, "ops: give text"),
        ('seed = 3\ntargets = "toy"\ncheck = ["levels", "nope"]\n', 3, "check: there is no check 'nope'"),
        ('ops = ["Addd"]\ntargets = "toy"\n', 1, "ops: there is no operator 'Addd'"),
        ('targets = "toy"\nproducer = ["strict{nodes=0}"]\n', 2, "producer: nodes, variants"),
    ],
)
def test_an_error_names_file_and_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    path = written(tmp_path, text)
    for words in (("plan", "check", path), ("plan", "show", path), ("fuzz", "--plan", path)):
        result = call(*words)
        assert result.exit_code == 2, result.output
        assert f"{path}:{line}: {said}" in result.stderr
        assert result.stderr.count("\n") == 1


def test_a_plan_needs_targets_and_a_file(tmp_path: Path) -> None:
    result = call("plan", "check", written(tmp_path, "time = 3\n"))
    assert result.exit_code == 2
    assert "targets is missing" in result.stderr
    assert call("plan", "check", tmp_path / "nowhere.toml").exit_code == 2
    (tmp_path / "latin.toml").write_bytes(b'targets = "\xff"\n')
    result = call("fuzz", "--plan", tmp_path / "latin.toml")
    assert result.exit_code == 2
    assert "no text in UTF-8" in result.stderr


@pytest.mark.parametrize("text", [GOOD, 'targets = "toy"\ntests = 9\n', 'targets = "toy"\npreset = "polyjuice"\n'])
def test_what_is_shown_is_a_plan_again(tmp_path: Path, text: str) -> None:
    shown = call("plan", "show", written(tmp_path, text))
    assert shown.exit_code == 0
    again = call("plan", "show", written(tmp_path, shown.stdout))
    assert again.stdout == shown.stdout
    assert call("plan", "check", tmp_path / "plan.toml").exit_code == 0


def test_the_arms_are_shown(tmp_path: Path) -> None:
    data = json.loads(call("plan", "show", "--json").stdout)
    weights = {arm["name"]: arm["weight"] for arm in data["arms"]}
    assert sum(weights.values()) == pytest.approx(1, abs=1e-3)
    assert {"everyday/levels", "disruptive"} <= set(weights)
    assert data["options"]["targets"] == ["onnxruntime"]
    fixed = json.loads(call("plan", "show", "--json", written(tmp_path, 'targets="toy"\nproducer="strict"\n')).stdout)
    assert fixed["arms"] == []


KEYS = st.from_regex(r"[a-z][a-z-]{0,10}", fullmatch=True)
VALUES = (
    st.booleans() | st.integers(-(2**60), 2**60) | st.text(st.characters(exclude_categories=["Cs"], min_codepoint=32))
)


@given(st.dictionaries(KEYS, VALUES | st.lists(VALUES, max_size=3), max_size=6))
def test_printed_plans_are_toml(tmp_path_factory: pytest.TempPathFactory, values: dict[str, object]) -> None:
    path = tmp_path_factory.mktemp("plans") / "plan.toml"
    path.write_text(plan_text(values), "utf-8", newline="")
    read = read_plan(path)
    assert read.values == values
    assert [read.lines[key] for key in values] == list(range(1, len(values) + 1))


def test_voters_are_the_quick_targets_unless_targets_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plans: list[Plan] = []

    def record(plan: Plan, listeners: object) -> None:
        plans.append(plan)
        raise UsageError("enough")

    monkeypatch.setattr(fuzz, "quick_targets", lambda: ("onnxruntime", "reference"))
    monkeypatch.setattr(coordinator, "fuzz", record)
    for words in ((), ("toy", "onnxruntime")):
        call("fuzz", *words, "--preset", "voters", "--out", tmp_path / "out")
    assert [plan.targets for plan in plans] == [("onnxruntime", "reference"), ("toy", "onnxruntime")]
    assert all(arm.kind == DIFFERENTIAL for plan in plans for arm in arms_of(plan))
    assert [plan.nodes for plan in plans] == [3, 3]  # graphs are small unless --nodes says otherwise
