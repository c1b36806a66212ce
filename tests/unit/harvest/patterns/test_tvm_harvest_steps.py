"""The harvest of TVM's tests around its children: what there must be, what has ended, what an interruption leaves."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from miscompile.base.errors import UsageError
from miscompile.cli.main import program
from miscompile.harvest import processes
from miscompile.harvest.patterns import tvm_tests
from miscompile.harvest.patterns.tvm_tests import extract_tvm, gathered, harvest_tvm

PAIR: list[Mapping[str, object]] = [
    {"begun": "FILE"},
    {"module": "m", "script": "", "constants": []},
    {"pass": "P", "module": "m", "changed": True, "test": "t"},
    {"exit": 0},
]

Step = Callable[[list[str]], str]


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tvm_tests, "need", lambda packages, what: None)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "tvm" / "tests" / "python" / "relax"
    folder.mkdir(parents=True)
    for name in ("test_transform_a.py", "test_b.py", "test_c.py"):
        (folder / name).write_text("")
    return tmp_path / "tvm"


def children(monkeypatch: pytest.MonkeyPatch, *steps: Step) -> list[str]:
    """Let `steps` stand for the children, one after the other; return the names of the files that they get."""
    waiting: Iterator[Step] = iter(steps)
    names: list[str] = []

    def child(command: list[str], folder: Path, seconds: float) -> str:
        names.append(Path(command[3]).stem)
        return next(waiting)(command)

    monkeypatch.setattr(tvm_tests, "_child", child)
    return names


def writes(path: str, *lines: Mapping[str, object]) -> None:
    with Path(path).open("a", encoding="utf-8") as stream:
        stream.writelines(json.dumps(line) + "\n" for line in lines)


def passes(command: list[str]) -> str:
    Path(command[4]).unlink(missing_ok=True)
    writes(command[4], *PAIR)
    return "ended"


def interrupted(command: list[str]) -> str:
    writes(command[4], *PAIR[:3])
    raise KeyboardInterrupt


def never_begins(command: list[str]) -> str:
    return "crashed"


def test_without_the_packages_no_test_runs(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tvm_tests, "need", processes.need)
    monkeypatch.setattr(processes, "find_spec", lambda name: None)
    assert not children(monkeypatch)
    with pytest.raises(UsageError, match=r"harvest tvm needs apache-tvm and pytest: pip install apache-tvm pytest"):
        harvest_tvm(checkout, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_told(checkout: Path) -> None:
    with pytest.raises(UsageError, match="/proc/x/pairs cannot be written"):
        harvest_tvm(checkout, Path("/proc/x"))


def test_a_file_whose_tests_never_began_has_not_ended(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    names = children(monkeypatch, never_begins, passes, passes, passes)
    with pytest.raises(UsageError, match=r"no test of test_transform_a.py began: .*hooks.tvm .* says why"):
        harvest_tvm(checkout, out)
    writes(str(out / "ended.jsonl"), {"file": "test_b.py", "end": "crashed", "seconds": 1.0})
    found = harvest_tvm(checkout, out, lambda _: None)
    assert found.files == {"passed": 3}
    assert names == ["test_transform_a", "test_transform_a", "test_b", "test_c"]
    assert harvest_tvm(checkout, out) == found


def test_an_interruption_keeps_what_the_tests_gave_and_the_file_is_run_again(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, library = tmp_path / "out", tmp_path / "out" / "library"

    def extracts(command: list[str]) -> str:
        pairs = Path(command[3])
        writes(f"{command[4]}/vetted.jsonl", {"done": pairs.stem, "bytes": pairs.stat().st_size})
        return "ended"

    def stopped(command: list[str]) -> str:
        writes(f"{command[4]}/vetted.jsonl", {"begun": "killer"}, {"begun": "d"})
        raise KeyboardInterrupt

    children(monkeypatch, passes, interrupted, stopped)
    found = harvest_tvm(checkout, out, lambda _: None)
    assert (found.stopped, found.files, found.pairs) == (True, {"passed": 1}, 1)
    taken = extract_tvm(out, library, lambda _: None)
    assert (taken.stopped, taken.files, taken.left) == (True, {}, {"kills the compiler": 1})
    assert (library / "vetted.jsonl").read_text().endswith('\n{"stopped": "d"}\n')

    assert children(monkeypatch, *[extracts] * 2) is not None
    assert extract_tvm(out, library, lambda _: None).files == {"ended": 2}
    names = children(monkeypatch, *[passes] * 2, *[extracts] * 2)
    assert harvest_tvm(checkout, out, lambda _: None).files == {"passed": 3}
    assert extract_tvm(out, library, lambda _: None).files == {"ended": 2}, "one is new, and one has grown"
    assert names == ["test_b", "test_c", "test_b", "test_c"]
    assert gathered(out).stopped is False


def test_the_verb_goes_on_after_an_interruption(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = children(monkeypatch, interrupted, lambda command: "ended")
    told = CliRunner().invoke(program, ["harvest", "tvm", str(checkout), "--out", str(tmp_path / "out"), "--json"])
    assert told.exit_code == 0, told.output
    report = json.loads(told.stdout)
    assert (report["stopped"], report["pairs"], names) == (True, 1, ["test_transform_a"] * 2)
    children(monkeypatch, passes, interrupted, lambda command: "ended", lambda command: "ended")
    told = CliRunner().invoke(program, ["harvest", "tvm", str(checkout), "--out", str(tmp_path / "out")])
    assert "stopped; going on with what the tests gave until now, Ctrl-C ends that too" in told.stderr
    assert "(stopped before the end)" in told.stdout


def test_the_pattern_that_was_looked_at_when_our_own_time_ran_out_is_looked_at_again(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, library = tmp_path / "out", tmp_path / "out" / "library"
    children(monkeypatch, passes, passes, passes)
    harvest_tvm(checkout, out, lambda _: None)

    def slow(command: list[str]) -> str:
        writes(f"{command[4]}/vetted.jsonl", {"begun": "d"})
        return "timed out"

    def done(command: list[str]) -> str:
        pairs = Path(command[3])
        writes(f"{command[4]}/vetted.jsonl", {"done": pairs.stem, "bytes": pairs.stat().st_size})
        return "ended"

    children(monkeypatch, slow, done, done)
    found = extract_tvm(out, library, lambda _: None)
    assert "kills the compiler" not in found.left
    assert (library / "vetted.jsonl").read_text().count('{"stopped": "d"}') == 1


def test_a_damaged_pattern_does_not_end_the_counting(tmp_path: Path) -> None:
    (tmp_path / "P-1.relax.json").write_text('{"name": "P')
    assert tvm_tests._yielded(tmp_path, {}).left == {"a damaged file": 1}
