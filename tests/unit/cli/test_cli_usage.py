"""Wrong input of every kind ends with exit code 2 and one line; other failures with 3 and one line."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from miscompile import __version__
from miscompile.base.errors import ExecutionError
from miscompile.cli.exit_codes import UNTESTED
from miscompile.cli.main import VERBS, program
from miscompile.core.events import Started
from miscompile.core.ports import Listener
from miscompile.engine import coordinator, single
from miscompile.engine.plan import Plan
from miscompile.environments import resolve
from miscompile.findings.store import Store
from miscompile.targets import registry


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(program, [str(word) for word in words])


def assert_usage_error(result: Result, says: str) -> None:
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("miscompile: error: ")
    assert says in result.stderr


@pytest.fixture(autouse=True)
def no_campaign(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("wrong input must not reach the campaign")

    monkeypatch.setattr(coordinator, "fuzz", refuse)
    for name in ("reduce", "bisect", "replay", "matrix"):
        monkeypatch.setattr(single, name, refuse)


WRONG = {
    "unknown pass": (["patterns", "--pass", "NoSuchPass"], "there is no pass NoSuchPass on any target; "),
    "pass of another": (
        ["patterns", "--target", "onnxruntime", "--pass", "TransposeFuse"],
        "on onnxruntime",
    ),
    "pass misspelt": (["patterns", "--pass", "GeluFusionL3"], "did you mean GeluFusionL"),
    "each for modules": (["harvest", "tvm", "--each", "3"], "harvest tvm takes no --each; it is for onnx"),
    "each for tests": (["harvest", "torch", "--each", "3"], "--each is for --kind neighbours"),
    "keep without tests": (["harvest", "models", ".", "--out", "a", "--keep", "b"], "harvest models takes no --keep"),
    "file time without files": (["harvest", "programs", "--out", "a", "--file-time", "5"], "takes no --file-time"),
    "targets for Relax": (["harvest", "tvm", ".", "--out", "a", "--on", "tvm"], "harvest tvm takes no --on"),
    "passes for tests": (
        ["harvest", "onnxscript", ".", "--out", "a", "--pass", "A"],
        "no --pass; it is for programs",
    ),
    "time for tests": (
        ["harvest", "inductor", ".", "--out", "a", "--time", "5m"],
        "no --time; it is for programs",
    ),
    "kind of models": (["harvest", "models", ".", "--out", "a", "--kind", "tests"], "it is for onnx, torch, keras"),
    "no such verb": (["fuz"], "No such command 'fuz'"),
    "no such option": (["--colour", "fuzz"], "No such option"),
    "no target": (["fuzz"], "Missing argument 'TARGET...'"),
    "unknown target": (["fuzz", "gcc"], "there is no target 'gcc'; there are: "),
    "empty target": (["fuzz", ""], "is not a spec"),
    "bad spec": (["fuzz", "onnxruntime{"], "is not a spec"),
    "unknown target option": (["fuzz", "onnxruntime{speed=9}"], "has no option 'speed'"),
    "one target twice": (["fuzz", "onnxruntime", "onnxruntime"], "is named twice"),
    "time in words": (["fuzz", "onnxruntime", "--time", "soon"], "'soon' is no duration"),
    "empty time": (["fuzz", "onnxruntime", "--time", ""], "is no duration"),
    "negative time": (["fuzz", "onnxruntime", "--time", "-5"], "is no duration"),
    "time without units": (["fuzz", "onnxruntime", "--time", "1h30"], "give each part a unit"),
    "infinite time": (["fuzz", "onnxruntime", "--time", "inf"], "is no duration"),
    "time without value": (["fuzz", "onnxruntime", "--time"], "requires an argument"),
    "no tests": (["fuzz", "onnxruntime", "--tests", "0"], "0 is not in the range"),
    "half a test": (["fuzz", "onnxruntime", "--tests", "1.5"], "not a valid integer"),
    "negative seed": (["fuzz", "onnxruntime", "--seed", "-1"], "-1 is not in the range"),
    "seed in words": (["fuzz", "onnxruntime", "--seed", "random"], "not a valid integer"),
    "huge seed": (["fuzz", "onnxruntime", "--seed", str(2**63)], "is not in the range"),
    "no workers": (["fuzz", "onnxruntime", "--workers", "0"], "0 is not in the range"),
    "too many workers": (["fuzz", "onnxruntime", "--workers", "99999"], "is not in the range"),
    "unknown operator": (["fuzz", "onnxruntime", "--ops", "Addd"], "there is no operator 'Addd'"),
    "operator in lower case": (["fuzz", "onnxruntime", "--ops", "add"], "did you mean Add?"),
    "no operator": (["fuzz", "onnxruntime", "--ops", ","], "at least one name"),
    "unknown dtype": (["fuzz", "onnxruntime", "--dtypes", "float"], "there is no dtype 'float'; there are: float32"),
    "dtype without support": (["fuzz", "onnxruntime", "--dtypes", "string"], "there is no dtype 'string'"),
    "negative rank": (["fuzz", "onnxruntime", "--max-rank", "-1"], "is not in the range"),
    "rank in words": (["fuzz", "onnxruntime", "--max-rank", "few"], "not a valid integer"),
    "no nodes": (["fuzz", "onnxruntime", "--nodes", "0"], "is not in the range"),
    "no size": (["fuzz", "onnxruntime", "--max-dim", "0"], "is not in the range"),
    "motifs above one": (["fuzz", "onnxruntime", "--motifs", "1.5"], "is no probability"),
    "motifs nan": (["fuzz", "onnxruntime", "--motifs", "nan"], "is no probability"),
    "old opset": (["fuzz", "onnxruntime", "--opset", "7"], "is tested with opsets 13 to"),
    "future opset": (["fuzz", "onnxruntime", "--opset", "99"], "is tested with opsets 13 to"),
    "bad producer": (["fuzz", "onnxruntime", "--producer", "a b"], "is not a spec"),
    "producer option without value": (["fuzz", "onnxruntime", "--producer", "sweep{nodes}"], "has no value"),
    "unknown producer": (["fuzz", "onnxruntime", "--producer", "guess"], "there is no producer 'guess'"),
    "unknown producer option": (["fuzz", "onnxruntime", "--producer", "sweep{x=1}"], "has no option 'x'"),
    "unknown comparison": (["fuzz", "onnxruntime", "--compare", "loose"], "'loose' is not one of"),
    "no seconds": (["fuzz", "onnxruntime", "--limit-seconds", "0"], "0.0 is not in the range"),
    "memory in words": (["fuzz", "onnxruntime", "--limit-memory", "lots"], "'lots' is no size"),
    "no memory": (["fuzz", "onnxruntime", "--limit-memory", "0"], "is no size"),
    "resume nothing": (["fuzz", "onnxruntime", "--resume", "--out", "nowhere"], "no campaign in nowhere to resume"),
    "no model": (["check"], "Missing argument 'MODEL'"),
    "model not there": (["check", "none.onnx"], "does not exist"),
    "model is a folder": (["check", "."], "is a directory"),
    "matrix of nothing": (["targets", "--matrix", "gcc"], "there is no target 'gcc'"),
    "targets with argument": (["targets", "onnxruntime"], "No such command 'onnxruntime'"),
    "install nothing": (["targets", "install"], "Missing argument"),
    "install the unknown": (["targets", "install", "gcc==12"], "there is no target 'gcc'"),
    "install a part": (["targets", "install", "toy"], "toy is a part of this tool"),
    "install no version": (["targets", "install", "onnxruntime==new"], "'new' in 'onnxruntime==new' is no version"),
    "remove nothing": (["targets", "remove"], "or give --all"),
    "remove a name and all": (["targets", "remove", "toy", "--all"], "or give --all"),
    "remove what is not there": (["targets", "remove", "onnxruntime==0.0.1"], "no environment for onnxruntime==0.0.1"),
    "no version": (["fuzz", "onnxruntime=="], "is no version; write onnxruntime==1.2.3"),
    "a version of the toy": (["fuzz", "toy==1.0"], "has no versions; write toy"),
    "an opset too new for a version": (["fuzz", "onnxruntime==1.17.3", "--opset", "21"], "with opsets 13 to 20"),
    "keep without releases": (["bisect", ".", "wrong-1", "--keep"], "--keep goes with --releases"),
    "findings of nothing": (["findings"], "Missing argument 'OUT'"),
    "findings of no folder": (["findings", "nowhere"], "does not exist"),
    "reduce without id": (["reduce", "."], "Missing argument 'ID'"),
    "bisect without id": (["bisect", "."], "only --releases goes without ID"),
    "repro without id": (["repro", "."], "Missing argument 'ID'"),
    "replay without id": (["replay", "."], "Missing argument 'ID'"),
    "reduce without end": (["reduce", ".", "wrong-1", "--time", "x"], "is no duration"),
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_wrong_input(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words, says = WRONG[name]
    assert_usage_error(call(*words), says)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", ["findings", "reduce", "bisect", "repro", "replay"])
@pytest.mark.parametrize("identifier", ["wrong-1", "../x", ""])
def test_a_finding_that_is_not_there(verb: str, identifier: str, tmp_path: Path) -> None:
    result = call(verb, tmp_path, identifier)
    assert_usage_error(result, "")
    assert list(tmp_path.iterdir()) == []
    Store.open(tmp_path).close()
    assert_usage_error(call(verb, tmp_path, identifier), "finding")


def test_a_database_that_is_none_is_moved_aside_and_made_anew(tmp_path: Path) -> None:
    (tmp_path / "miscompile.db").write_text("nonsense " * 500)
    assert call("findings", tmp_path).exit_code == UNTESTED
    assert (tmp_path / "miscompile.db.damaged-0").read_text() == "nonsense " * 500


def test_an_existing_campaign_needs_resume(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    assert_usage_error(call("fuzz", "onnxruntime", "--out", tmp_path), "continue it with --resume")


def test_a_folder_with_other_things_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    assert_usage_error(call("fuzz", "onnxruntime", "--out", tmp_path), "not empty and holds no campaign")
    assert_usage_error(call("fuzz", "onnxruntime", "--out", tmp_path / "thesis.txt"), "is a file")


def test_a_model_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    assert_usage_error(call("check", tmp_path / "model.onnx"), "model.onnx")


def test_a_missing_compiler_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(registry, "installed", lambda _: None)
    monkeypatch.setattr(resolve, "installed", lambda _: None)
    assert_usage_error(
        call("fuzz", "onnxruntime", "--out", tmp_path / "out"), "`miscompile targets install onnxruntime`"
    )
    assert list(tmp_path.iterdir()) == []


def failing(error: BaseException) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize("error", [ExecutionError("a worker\ndid not start"), ZeroDivisionError("division by zero")])
def test_a_failure_of_the_tool_is_exit_code_3(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "fuzz", failing(error))
    result = call("fuzz", "onnxruntime", "--json", "--out", tmp_path / "out")
    assert result.exit_code == 3
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert "again with --debug" in result.stderr
    assert str(error).split("\n")[0] in result.stderr
    for words in (["--debug", "fuzz", "onnxruntime"], ["fuzz", "onnxruntime", "--debug"]):
        result = call(*words, "--json", "--out", tmp_path / "out")
        assert result.exit_code == 3
        assert "Traceback" in result.stderr


def test_an_interrupt_where_there_is_nothing_to_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single, "matrix", failing(KeyboardInterrupt()))
    result = call("targets", "--matrix", "onnxruntime")
    assert result.exit_code == 130
    assert "miscompile: stopped" in result.stderr


def test_an_interrupt_before_the_first_test_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "fuzz", failing(KeyboardInterrupt()))
    result = call("fuzz", "onnxruntime", "--out", tmp_path / "out")
    assert result.exit_code == 130
    assert not (tmp_path / "out").exists()


def test_version() -> None:
    result = call("--version")
    assert (result.exit_code, result.stdout) == (0, f"miscompile {__version__}\n")


def test_no_verb_shows_help_and_is_no_success() -> None:
    result = call()
    assert result.exit_code == 2
    assert "miscompile fuzz onnxruntime" in result.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_help_teaches_with_an_example(verb: str) -> None:
    result = call(verb, "--help")
    assert result.exit_code == 0
    assert "Example" in result.stdout
    assert f"miscompile {verb}" in result.stdout


def test_help_lists_every_verb_with_a_line() -> None:
    result = call("--help-all")
    assert result.exit_code == 0
    for verb in VERBS:
        assert f"  {verb} " in result.stdout


def options_of(monkeypatch: pytest.MonkeyPatch, *words: str | Path) -> Plan:
    """Return the options that reach the campaign; the campaign itself leaves a store of one test."""
    seen: list[Plan] = []

    def note(options: Plan, _: Sequence[Any]) -> None:
        seen.append(options)
        with Store.open(options.out) as store:
            store.add_counters({"tests": 1})

    monkeypatch.setattr(coordinator, "fuzz", note)
    result = call(*words)
    assert result.exit_code == 0, result.output
    return seen[0]


def test_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = options_of(monkeypatch, "fuzz", "onnxruntime")
    assert (options.seconds, options.tests, options.out, options.steer) == (
        300.0,
        None,
        Path("miscompile-out"),
        True,
    )
    assert options.workers >= 1
    assert (tmp_path / "miscompile-out" / "summary.json").exists()


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        (["--time", "90"], 90.0),
        (["--time", "5m"], 300.0),
        (["--time", "2H"], 7200.0),
        (["--time", "1h30m"], 5400.0),
        (["--time", "0.5s"], 0.5),
        (["--time", "0"], None),
        (["--tests", "10"], None),
        (["--tests", "10", "--time", "1d"], 86400.0),
    ],
)
def test_limits_of_time(
    words: list[str], seconds: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = options_of(monkeypatch, "fuzz", "onnxruntime", "--out", tmp_path / "out", *words)
    assert options.seconds == seconds


def test_every_option_arrives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = options_of(
        monkeypatch, "fuzz", "onnxruntime", "--out", tmp_path / "out", "--seed", "0", "--workers", "3",
        "--ops", "Add, Mul,Add", "--dtypes", "float32", "--max-rank", "3", "--max-dim", "5", "--nodes", "7",
        "--motifs", "0.25", "--no-guidance", "--opset", "18", "--producer", "strict{nodes=3}", "--producer", "sweep",
        "--keep-passes", "--limit-seconds", "2.5",
        "--limit-memory", "1.5GiB", "--compare", "fixed", "--tests", "9",
    )  # fmt: skip
    assert options == Plan(
        target="onnxruntime", seconds=None, tests=9, seed=0, out=tmp_path / "out", workers=3,
        producers=("strict{nodes=3}", "sweep"), schedule=True,
        ops=("Add", "Mul"), dtypes=("float32",), max_rank=3, max_dim=5, nodes=7, motifs=0.25, guidance=False,
        opset=18, steer=False, compare="fixed", limit_seconds=2.5, limit_memory=3 * 2**29,
    )  # fmt: skip


def test_a_new_seed_is_drawn_and_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = options_of(monkeypatch, "fuzz", "onnxruntime", "--out", tmp_path / "1")
    second = options_of(monkeypatch, "fuzz", "onnxruntime", "--out", tmp_path / "2")
    assert first.seed != second.seed

    def begin(options: Plan, listeners: Sequence[Listener]) -> None:
        Store.open(options.out).close()
        for listener in listeners:
            listener.on(Started())

    monkeypatch.setattr(coordinator, "fuzz", begin)
    result = call("fuzz", "onnxruntime", "--out", tmp_path / "3", "--seed", "12")
    assert "seed 12" in result.stderr


def test_verbs_are_commands_of_their_name() -> None:
    context = click.Context(program)
    for verb in VERBS:
        command = program.get_command(context, verb)
        assert command is not None
        assert command.name == verb
