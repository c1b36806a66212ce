"""Harvests run tests in children that may crash, hang or be interrupted, and cut patterns out of what these saw."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from miscompile.cli.main import program
from miscompile.graph.emit import emit
from miscompile.graph.text.parser import parse_model
from miscompile.harvest.patterns import suites
from miscompile.harvest.patterns.gather import gather_models
from miscompile.harvest.patterns.harvest import Extracted, Extraction, extract
from miscompile.harvest.patterns.pieces import PieceLimits
from miscompile.harvest.patterns.suites import SuiteKind, run_suite
from miscompile.patterns.library import read_library

pytestmark = pytest.mark.process

HOOK = """
import sys
from miscompile.harvest.patterns.hooks.recording import main, nothing

def install(recorder):
    sys.modules["compiler"] = type("Compiler", (), {"build": staticmethod(recorder.pair)})
    return nothing

if __name__ == "__main__":
    sys.exit(main(install))
"""

WITHOUT_PYTEST = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "pytest" else find(name, *more)
"""

TESTS = {
    "test_good.py": """
import unittest, compiler
class Some(unittest.TestCase):
    def test_one(self): compiler.build(b"one", "A", True)
    def test_two(self): compiler.build(b"two"); self.fail("no")
    @unittest.skip("why")
    def test_three(self): pass
""",
    "test_crash.py": "import os, compiler\ndef test_it():\n    compiler.build(b'three')\n    os.abort()\n",
    "test_hang.py": "import time, compiler\ndef test_it():\n    compiler.build(b'four')\n    time.sleep(600)\n",
    "test_broken.py": "import nothing_of_that_name\n",
}

CHAIN = """ir 8 opset 17 graph g(%x: float32["n", 4], %m: float32[4, 5]) -> (%y: float32["n", 5]) {
  init %b: float32[5] = [1.0, 2.0, 3.0, 4.0, 5.0]
  %s = Sigmoid(%x)
  %p = MatMul(%s, %m)
  %a = Add(%p, %b)
  %y = Tanh(%a)
}"""


def on_progress(_: str) -> None:
    pass


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SuiteKind:
    """A suite whose compiler is three lines long; its tests lie in `tmp_path`/tests."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "hook_of_nothing.py").write_text(HOOK)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return SuiteKind("nothing", "hook_of_nothing", ())


def files(tmp_path: Path, *names: str) -> list[Path]:
    for name in names:
        (tmp_path / "tests" / name).write_text(TESTS[name])
    return [tmp_path / "tests" / name for name in names]


def chain(folder: Path) -> Path:
    (folder / "MatMulAddFusion").mkdir(parents=True)
    (folder / "MatMulAddFusion" / "chain.onnx").write_bytes(emit(parse_model(CHAIN)))
    return folder


@pytest.mark.slow
def test_a_crash_ends_a_file_and_keeps_what_it_gave(suite: SuiteKind, tmp_path: Path) -> None:
    wanted = files(tmp_path, "test_good.py", "test_crash.py", "test_broken.py")
    gathered = run_suite(suite, wanted, tmp_path / "out", 300.0, on_progress)
    assert gathered.sources == {"ran": 1, "died": 1, "empty": 1}
    assert gathered.tests == {"passed": 1, "failed": 1, "skipped": 1}
    assert sorted(pair.model.read_bytes() for pair in gathered.pairs) == [b"one", b"three", b"two"]
    assert {pair.test for pair in gathered.pairs} >= {"test_good.py::Some::test_one", "test_crash.py::test_it"}
    assert not gathered.stopped
    assert [note.split()[:2] for note in gathered.notes] == [["test_crash.py", "died:"], ["test_broken.py", "ran"]]
    assert "nothing_of_that_name" in gathered.notes[1]


@pytest.mark.slow
def test_a_hang_ends_with_the_time_of_the_file(suite: SuiteKind, tmp_path: Path) -> None:
    gathered = run_suite(suite, files(tmp_path, "test_hang.py"), tmp_path / "out", 2.0, on_progress)
    assert gathered.sources == {"time": 1}
    assert gathered.notes == ["test_hang.py ran out of 2 s"]


@pytest.mark.slow  # a pytest run of its own
def test_an_interruption_keeps_what_is_there(suite: SuiteKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = suites._run

    def interrupted(suite: SuiteKind, path: Path, out: Path, seconds: float) -> str:
        original(suite, path, out, seconds)
        raise KeyboardInterrupt

    monkeypatch.setattr(suites, "_run", interrupted)
    gathered = run_suite(suite, files(tmp_path, "test_good.py", "test_crash.py"), tmp_path / "out", 300.0, on_progress)
    assert gathered.stopped
    assert gathered.sources == {"stopped": 1}
    assert len(gathered.pairs) == 2


def test_tests_run_without_pytest_too(suite: SuiteKind, tmp_path: Path) -> None:
    (tmp_path / "hook_of_nothing.py").write_text(WITHOUT_PYTEST + HOOK)
    gathered = run_suite(suite, files(tmp_path, "test_good.py"), tmp_path / "out", 300.0, on_progress)
    assert gathered.tests == {"passed": 1, "failed": 1, "skipped": 1}
    assert len(gathered.pairs) == 2


def test_a_pattern_is_the_smallest_block_that_wakes_the_pass(tmp_path: Path) -> None:
    pairs = gather_models(chain(tmp_path / "models"), ["MatMulAddFusion"]).pairs
    found = extract(pairs, ["toy"], "mine", Extraction(seconds=300.0), on_progress)
    (pattern,) = [one for one in found.patterns if "MatMulAddFusion" in one.triggers_on("toy")]
    assert pattern.operators == ("MatMul", "Add")
    assert pattern.granularity == "block"
    assert pattern.origin == "MatMulAddFusion/chain.onnx (MatMulAddFusion)"
    assert pattern.motif is not None
    assert found.seen["toy", "MatMulAddFusion"] == 1
    assert pattern.seed is not None
    sigmoid = pattern.seed.ranges["s"]
    assert 0 <= sigmoid.lo < sigmoid.hi <= 1, "what flows in is bounded as it was seen in the whole model"


@pytest.mark.slow
def test_the_same_harvest_gives_the_same_patterns(tmp_path: Path) -> None:
    pairs = gather_models(chain(tmp_path / "models"), []).pairs

    def run() -> Extracted:
        return extract(pairs, ["toy"], "mine", Extraction(limits=PieceLimits(sample=5)), on_progress)

    first, second = run(), run()
    assert [one.name for one in first.patterns] == [one.name for one in second.patterns]
    assert [one.operators for one in first.patterns] == [one.operators for one in second.patterns]


def test_the_verb_writes_a_library_and_says_what_it_did(tmp_path: Path) -> None:
    folder, out = chain(tmp_path / "models"), tmp_path / "mine.patterns"
    (folder / "broken.onnx").write_bytes(b"no model")
    result = CliRunner().invoke(program, ["harvest", "models", str(folder), "--out", str(out), "--on", "toy", "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert (report["pairs"], report["models"], report["files"]) == (2, 1, {"ran": 2})
    assert any("cannot be read" in reason for reason in report["left"])
    rows = {row["pass"]: row for row in report["passes"]}
    assert rows["MatMulAddFusion"]["block"] == 1
    assert len(read_library(out)) == report["patterns"]
    listed = CliRunner().invoke(program, ["patterns", "--library", str(out), "--target", "toy", "--json"])
    assert {one["name"] for one in json.loads(listed.stdout)} == {one.name for one in read_library(out)}
    name = next(one.name for one in read_library(out) if one.operators == ("MatMul", "Add"))
    shown = CliRunner().invoke(program, ["patterns", "--library", str(out), name])
    assert "= MatMul(" in shown.stdout
    assert f"[{name}]" in shown.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["models", "absent", "--out", "a"], "there is no folder absent"),
        (["onnxruntime", "absent", "--out", "a"], "there is no absent"),
        (["models", "here", "--out", "here"], "here is a folder"),
        (["onnxruntime", ".", "--out", "a", "--keep", "."], "is not empty"),
        (["models", "here", "--out", "none/a"], "cannot be written"),
        (["models", "here", "--out", "a", "--on", "nothing"], "nothing"),
        (["tvm", "here", "--out", "b"], "tests/python/relax"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    result = CliRunner().invoke(program, ["harvest", *words])
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_missing_package_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(suites.SUITES, "onnxruntime", SuiteKind("onnxruntime", "x", (("no_such_module", "no-such"),)))
    (tmp_path / "test_a.py").write_text("")
    words = ["harvest", "onnxruntime", str(tmp_path), "--out", str(tmp_path / "a"), "--on", "toy"]
    result = CliRunner().invoke(program, words)
    assert result.exit_code == 2
    assert "pip install no-such" in result.stderr
