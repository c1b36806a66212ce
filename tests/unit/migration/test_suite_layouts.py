"""Suites in the form of a compiler's own tests."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from miscompile.base.errors import UsageError
from miscompile.core.case import Case
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.emit import to_program
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.migration.layouts import export_lit, export_pytest
from miscompile.migration.suite import SuiteEntry
from miscompile.targets.upstream import UpstreamStory
from miscompile.triage.upstream import upstream_files


def entry(op: str, value: Tensor, expected: Tensor) -> SuiteEntry:
    kinds = [TensorType(one.dtype, one.shape) for one in (value, expected)]
    graph = Graph("g", (ValueInfo("x", kinds[0]),), (ValueInfo("y", kinds[1]),), (Node(op, ("x",), ("y",)),))
    return SuiteEntry(op, Case(to_program(Model(graph, {"": 18}, ir_version=9)), ((value,),)), ((expected,),))


X = tensor(np.array([1.5, -2.0], np.float32))
WORDS = tensor(np.array([1, 2], np.int16))  # ONNX Runtime has no kernel of Relu for them
RIGHT = tensor(np.array([1.5, 0.0], np.float32))


def entries() -> Iterator[SuiteEntry]:
    yield entry("Relu", X, RIGHT)
    yield entry("Relu", X, RIGHT)
    yield entry("Identity", tensor(np.array(["a"], object)), tensor(np.array(["a"], object)))
    large = tensor(np.random.default_rng(1).random((300, 300), np.float32))
    yield entry("Abs", large, large)
    yield entry("Relu", WORDS, WORDS)
    yield entry("Neg", X, RIGHT)  # the results of another operator


@pytest.mark.compiler
def test_a_module_for_each_test_fails_where_the_compiler_is_wrong(tmp_path: Path) -> None:
    folder = tmp_path / "suite"
    report = export_pytest(entries(), folder, "onnxruntime")
    assert report.written == ["test_0001_Relu", "test_0002_Neg"]
    assert report.left_out == {
        "a repetition": 1,
        "results of a type that numpy does not compare": 1,
        "its tensors are too large for a module": 1,
        "the compiler does not support it": 1,
    }
    text = (folder / "test_0001_Relu.py").read_text()
    assert "miscompile" not in text
    command = [
        sys.executable,
        "-P",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(folder),
        str(folder),
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "1 failed, 1 passed" in ended.stdout
    assert "test_0002_Neg" in ended.stdout
    with pytest.raises(UsageError, match="is not empty"):
        export_pytest(entries(), folder, "onnxruntime")
    assert export_pytest(entries(), tmp_path / "first", "onnxruntime", most=1).written == ["test_0001_Relu"]


def test_only_some_compilers_test_with_lit(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no lit tests"):
        export_lit(entries(), tmp_path / "suite", "onnxruntime")


def described(story: UpstreamStory) -> dict[str, str]:
    """A target's function that writes what it is given."""
    if story.name == "bad":
        raise ValueError("no test comes of it")
    values = [one.array.tolist() for one in (*story.feed, *(story.expected or ()))]
    return {"told.txt": f"{story.level} {story.off} {story.kind} {story.stage} {story.payload!r} {values}"}


def long(story: UpstreamStory) -> dict[str, str]:
    """A target's function that writes too much."""
    return {"told.txt": "x" * 200_000}


def test_the_child_hands_over_what_a_target_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=":")
    story = UpstreamStory(b"program", (X,), (RIGHT,), "full", ("A",), "wrong", "run", "good")
    bad = UpstreamStory(b"", (), None, "off", (), "death", "compile", "bad")
    name = f"{Path(__file__).stem}:described"
    assert upstream_files(name, [bad, story]) == [
        {}, {"told.txt": "full ('A',) wrong run b'program' [[1.5, -2.0], [1.5, 0.0]]"},
    ]  # fmt: skip
    assert upstream_files(f"{Path(__file__).stem}:long", [story]) == [{}]
