"""What an issue says of releases and of a vote among compilers."""

from typing import Any

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


def test_the_reference_implementation_is_quoted() -> None:
    assert "onnx's reference implementation gives the expected values." in issue(reference_vote="reference")
    assert "agrees with the actual values, not with the expected ones" in issue(reference_vote="faulty")
    assert "reference implementation" not in issue()


def trial(release: str, answer: str, **more: object) -> dict[str, object]:
    return {"release": release, "answer": answer, "reason": "", "opset": 0, **more}


HISTORY: dict[str, Any] = {
    "distribution": "openvino", "first_bad": "2024.1.0", "last_good": "2024.0.0", "newest": trial("2026.4.1", "shows"),
    "tried": [trial("2023.0.0", "skipped"), trial("2023.1.0", "absent", opset=13), trial("2024.0.0", "absent"),
              trial("2024.1.0", "shows"), trial("2026.4.1", "shows")],
}  # fmt: skip


def test_the_releases_that_were_tried_are_named() -> None:
    told = (
        "Versions tried: passes with openvino 2023.1.0, 2024.0.0; fails with 2024.1.0, 2026.4.1 (the newest). "
        "First bad release: 2024.1.0. The script does not run with 2023.0.0. "
        "Releases up to 2023.1.0 ran the script with opset 13."
    )
    assert told in issue(releases=HISTORY)
    assert "Versions tried" not in issue()


def test_a_bug_that_is_fixed_or_was_always_there() -> None:
    fixed = {**HISTORY, "newest": trial("2027.0.0", "absent")}
    fixed["tried"] = [*HISTORY["tried"], trial("2027.0.0", "absent")]
    assert "; passes with 2027.0.0 (the newest)." in issue(releases=fixed)
    shows = {**HISTORY, "last_good": None, "tried": HISTORY["tried"][3:]}
    assert "fails with openvino 2024.1.0, 2026.4.1 (the newest). 2024.1.0 is the oldest that can be" in issue(
        releases=shows
    )
    late = {**shows, "tried": [trial(f"2023.{n}.0", "skipped") for n in range(6)] + shows["tried"]}
    assert "2024.1.0 is the oldest that gives an answer. The script does not run with 2023.0.0 to 2023.5.0." in issue(
        releases=late
    )
