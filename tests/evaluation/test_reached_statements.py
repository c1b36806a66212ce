"""Statements that tests reach: collected from a real front end, and kept in a file."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import pytest

from evaluation.opera.orders import CoveredFacts, ranked
from evaluation.opera.reach import PYTHON, Reached, coverage_of, reached_by, read_reached, write_reached
from miscompile.base.errors import UsageError
from miscompile.instances.code import digest_of
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn


def node(api: str, count: int, **given: int) -> Instance:
    inputs = tuple(Drawn("float32", (2, 3), 0.5, 1.5, seed) for seed in range(count))
    return Instance("onnx", api, "node", kwargs=given, inputs=inputs, version=13, results=(True,))


TESTS = [node("Flatten", 1), node("Softmax", 1, axis=1), node("Softmax", 1, axis=0), node("NoSuchOperator", 1)]


def test_without_coverage_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluation.opera.reach.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pip install coverage"):
        coverage_of(TESTS, "tinygrad", ["*"])


@pytest.mark.process
@pytest.mark.compiler
def test_statements_of_a_front_end() -> None:
    pytest.importorskip("coverage", reason="coverage is not installed here")
    pytest.importorskip("tinygrad", reason="tinygrad is not installed here")
    if shutil.which("clang") is None:
        pytest.skip("tinygrad compiles for the CPU with clang, which is not installed here")
    found = coverage_of(TESTS, "tinygrad", ["*/tinygrad/nn/onnx.py"])
    by_test = [found.tests[digest_of(test)] for test in TESTS]
    assert all(":" in statement for statement in found.statements)
    assert found.endings["run"] == 3
    assert by_test[0] - by_test[1]
    assert by_test[1] - by_test[0]
    assert by_test[1] == by_test[2]
    assert not by_test[3]
    order = ranked("additional", TESTS, CoveredFacts(coverage=found.tests))
    assert {TESTS[place].api for place in order[:2]} == {"Flatten", "Softmax"}
    with pytest.raises(UsageError, match="no test reached a statement"):
        coverage_of(TESTS[:1], "tinygrad", ["*/no/such/file.py"])


@pytest.mark.process
def test_a_child_that_dies_or_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluation.opera.reach._TRACER", "no_such_module")
    monkeypatch.setattr("evaluation.opera.reach.find_spec", lambda name: name)
    with pytest.raises(UsageError, match=r"cannot be loaded: .*no_such_module"):
        coverage_of(TESTS, "tinygrad", ["*"])


@pytest.mark.process
def test_the_others_go_on_after_a_death(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "dying.py").write_text(
        "import json, os, sys\nprint('ready', flush=True)\n"
        "for line in sys.stdin:\n"
        "    if 'NoSuchOperator' in line or '\"axis\":0' in line:\n        os._exit(9)\n"
        "    print(json.dumps({'ending': 'run', 'lines': {'a.py': [len(line)]}}), flush=True)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr("evaluation.opera.reach._TRACER", "dying")
    monkeypatch.setattr("evaluation.opera.reach.find_spec", lambda name: name)
    found = coverage_of([TESTS[3], *TESTS[:3], TESTS[0]], "tinygrad", ["*"])
    assert found.endings == {"run": 3, "died": 2}
    assert found.tests[digest_of(TESTS[3])] == frozenset()
    assert len(found.tests[digest_of(TESTS[0])]) == 1


def test_statements_are_collected_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    collected: list[int] = []

    def collect(tests: Sequence[Instance], target: str, sources: Sequence[str], *, constants: bool) -> Reached:
        assert (target, list(sources), constants) == ("tvm", list(PYTHON["onnx-tvm"]), True)
        collected.append(len(tests))
        return Reached(["a.py:1"], {digest_of(test): frozenset({0}) for test in tests})

    monkeypatch.setattr("evaluation.opera.reach.coverage_of", collect)
    place, told = tmp_path / "coverage" / "onnx-tvm.json.gz", list[str]()
    for tests in (TESTS[:2], TESTS[:2], TESTS[:1], TESTS):
        found = reached_by(tests, "onnx-tvm", "tvm", place, told.append, constants=True)
        assert {digest_of(test) for test in tests} <= found.tests.keys()
    assert collected == [2, 4]
    assert len(told) == 2
    with pytest.raises(UsageError, match="not written in Python; those of onnx-tvm"):
        reached_by(TESTS, "onnx-openvino", "openvino", place, told.append, constants=False)


def test_what_was_collected_is_kept(tmp_path: Path) -> None:
    reached = Reached(["a.py:1", "a.py:2"], {"x": frozenset({0, 1}), "y": frozenset()})
    reached.endings.update(["run", "died"])
    write_reached(reached, tmp_path / "reached.json.gz")
    assert read_reached(tmp_path / "reached.json.gz") == reached
    with pytest.raises(UsageError, match="holds no statements"):
        read_reached(tmp_path / "none.json.gz")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot write"):
        write_reached(reached, tmp_path / "file" / "folder.json.gz")


def test_what_is_written_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "coverage" / "reached.json.gz"
    write_reached(Reached(["a.py:1"], {"x": frozenset({0})}), place)

    def killed(data: object, file: IO[str]) -> None:
        file.write("[")
        raise KeyboardInterrupt

    monkeypatch.setattr("evaluation.opera.reach.json.dump", killed)
    with pytest.raises(KeyboardInterrupt):
        write_reached(Reached(["b.py:1"], {"y": frozenset({0})}), place)
    assert read_reached(place).statements == ["a.py:1"]
