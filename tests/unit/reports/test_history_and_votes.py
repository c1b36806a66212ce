"""What an issue says of releases and of a vote among compilers."""

import numpy as np

from miscompile.core.case import Case
from miscompile.core.finding import Finding, Property, Signature
from miscompile.core.tensor import tensor
from miscompile.findings.folder import Stored
from miscompile.graph.emit import to_program
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.reports.issue import render_issue

KIND = TensorType("float32", (1,))
GRAPH = Graph("g", (ValueInfo("x", KIND),), (ValueInfo("y", KIND),), (Node("Relu", ("x",), ("y",)),))
CASE = Case(to_program(Model(GRAPH, {"": 18})), ((tensor(np.ones(1, np.float32)),),))
BUILD = {"level": "full", "disabled": [], "threads": 1, "device": "cpu", "observe": False}


def issue(**facts: object) -> str:
    held = Property("differential", "openvino", Signature("openvino", "wrong", "", (), "Relu"))
    known = {"rule": "exact", "output": "y", "faulty": BUILD, "reference": BUILD, "details": {}, **facts}
    return render_issue(Stored(Finding("wrong-1", held, CASE, "they differ", known), "confirmed", None, {}), "g")


def test_the_other_compiler_and_the_groups_are_named() -> None:
    votes = {"openvino full": 1, "onnxruntime full": 0, "reference off": 0}
    text = issue(against="onnxruntime", details={"votes": votes})
    assert "Held against: `onnxruntime`, level `full`" in text
    assert "Agreed with each other: `openvino full` | `onnxruntime full`, `reference off`" in text


def test_without_a_vote_nothing_is_said_of_one() -> None:
    assert "Agreed" not in issue()


def test_the_first_bad_release_is_named() -> None:
    found = {"distribution": "openvino", "first_bad": "2024.1.0", "last_good": "2024.0.0"}
    assert "First release that shows it: openvino 2024.1.0; openvino 2024.0.0 does not show it." in issue(
        releases=found
    )
    assert "no older release could be asked" in issue(releases={**found, "last_good": None})
    assert "First release" not in issue()
