"""The script of a finding that nobody has reduced: it is there at once, and empty where none is possible."""

import numpy as np
import pytest

from miscompile.core.case import Case
from miscompile.core.run import Build, Run
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Evidence
from miscompile.graph.emit import to_program
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.triage import script
from miscompile.triage.script import first_script


def a_case() -> Case:
    kind = TensorType("float32", (2,))
    graph = Graph("g", (ValueInfo("x", kind),), (ValueInfo("y", kind),), (Node("Neg", ("x",), ("y",)),))
    return Case(to_program(Model(graph, {"": 18})), ((tensor(np.ones(2, np.float32)),),))


def wrong(case: Case, target: str, other: str) -> Evidence:
    faulty, reference = Run(case, target, Build("full")), Run(case, other, Build("off"))
    return Evidence("wrong", "exact", "y differs", faulty, reference, "y", {"feed": 0, "output": 0})


def test_a_new_finding_has_a_script_with_its_culprits() -> None:
    case = a_case()
    text = first_script(case, wrong(case, "toy", "toy"), None, ("FuseNeg",), {"numpy": "2"})
    compile(text, "repro.py", "exec")
    assert "FuseNeg" in text


def test_a_right_value_of_another_target_must_be_at_hand() -> None:
    case = a_case()
    evidence = wrong(case, "toy", "onnxruntime")
    assert first_script(case, evidence, None, (), {}) == ""
    assert "expected" in first_script(case, evidence, None, (), {}, tensor(-np.ones(2, np.float32)))


def test_a_program_that_is_too_large_for_a_text_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "_MOST_BYTES", 8)
    case = a_case()
    assert first_script(case, wrong(case, "toy", "toy"), None, (), {}) == ""
