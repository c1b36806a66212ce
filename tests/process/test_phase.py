"""A target's tracer is a child process: what it is told, what it says, and what becomes of one that fails."""

from pathlib import Path

import numpy as np
import pytest

from miscompile.core.case import Case
from miscompile.core.run import Build, Run
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Evidence, FindingKind
from miscompile.graph.emit import to_program
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.triage.phase import phase_of

pytestmark = pytest.mark.process

KIND = TensorType("float32", (2,))
GRAPH = Graph("g", (ValueInfo("x", KIND),), (ValueInfo("y", KIND),), (Node("Relu", ("x",), ("y",)),))
CASE = Case(to_program(Model(GRAPH, {"": 18})), ((tensor(np.array([1, 2], np.float32)),),))

TRACER = """
import json, sys
import numpy as np
import onnx
order = json.load(sys.stdin)
node = onnx.load(order["model"]).graph.node[0].op_type
x = np.load(order["feed"])["x"].tolist()
print(json.dumps({"phase": node, "fails": order["wrong"] is None, "detail": [x, order["level"], order["disabled"]]}))
"""


@pytest.fixture
def tracers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "good_tracer.py").write_text(TRACER)
    (tmp_path / "dying_tracer.py").write_text("import os; os.abort()")
    (tmp_path / "chatty_tracer.py").write_text("print('hello')")
    (tmp_path / "slow_tracer.py").write_text("import time; time.sleep(60)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def evidence(kind: FindingKind) -> Evidence:
    faulty = Run(CASE, "iree", Build("O2", frozenset({"b", "a"})))
    return Evidence(kind, "status", "", faulty, None, "y", {"feed": 0, "output": 0})


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "fails"), [("death", True), ("exception", True), ("wrong", False)])
def test_a_tracer_is_told_the_case_and_the_faulty_build(kind: FindingKind, fails: bool, tracers: None) -> None:
    said = phase_of("good_tracer", CASE, evidence(kind))
    assert said == {"phase": "Relu", "fails": fails, "detail": [[1.0, 2.0], "O2", ["a", "b"]]}


@pytest.mark.parametrize("module", ["dying_tracer", "chatty_tracer", "no_such_tracer"])
def test_a_tracer_that_fails_says_nothing(module: str, tracers: None) -> None:
    assert phase_of(module, CASE, evidence("wrong")) == {}


def test_a_tracer_has_its_time(tracers: None) -> None:
    assert phase_of("slow_tracer", CASE, evidence("wrong"), seconds=1.0) == {}
