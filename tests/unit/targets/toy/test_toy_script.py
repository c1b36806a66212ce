"""The reproducer of a toy finding is a Python file that shows the bug."""

import numpy as np
import pytest

from miscompile.core.case import Case
from miscompile.core.run import Build, Run
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Evidence
from miscompile.graph.emit import to_program
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.triage.script import write_script

KIND = TensorType("int32", (2,))
GRAPH = Graph("g", (ValueInfo("x", KIND),), (ValueInfo("y", KIND),), (Node("Sub", ("x", "x"), ("y",)),))
CASE = Case(to_program(Model(GRAPH, {"": 20})), ((tensor(np.array([1, 2], np.int32)),),))


def script(target: str) -> str:
    faulty, reference = Run(CASE, target, Build()), Run(CASE, target, Build("off"))
    evidence = Evidence("dtype", "structure", "int64 instead of int32", faulty, reference, "y")
    return write_script(CASE, evidence, culprits=["SelfCancellation"])


def test_script_shows_the_bug_and_the_culprit(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        exec(compile(script("toy{bugs=sub_self_dtype}"), "repro.py", "exec"), {})
    assert caught.value.code == 1
    printed = capsys.readouterr().out
    assert "BUG: output 0 on feed 0: int64 of shape (2,) instead of int32" in printed
    assert "without SelfCancellation the results are right" in printed


def test_script_of_a_healthy_toy_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(script("toy"), "repro.py", "exec"), {})
    assert "the bug does not show" in capsys.readouterr().out


def test_script_names_the_optimiser(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        exec(compile(script("toy{bugs=sub_self_dtype,optimiser=reference}"), "repro.py", "exec"), {})
    assert caught.value.code == 1
    assert "without SelfCancellation the results are right" in capsys.readouterr().out
