"""Findings as tests of IREE's repository."""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("iree.compiler")

from miscompile.core.case import Case
from miscompile.core.tensor import tensor
from miscompile.graph.emit import to_program
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.targets.upstream import UpstreamStory
from miscompile.triage.upstream import upstream_files

FUNCTION = "miscompile.targets.iree.lit:lit_test"
MATRIX, BYTES = TensorType("float32", (2, 2)), TensorType("uint8", (2,))
GRAPH = Graph(
    "g",
    (ValueInfo("x", MATRIX), ValueInfo("u", BYTES)),
    (ValueInfo("y", MATRIX), ValueInfo("v", BYTES)),
    (Node("Relu", ("x",), ("y",)), Node("Identity", ("u",), ("v",))),
)
FEED = (tensor(np.array([[1.5, -2], [0, -1]], np.float32)), tensor(np.array([200, 3], np.uint8)))
RIGHT = (tensor(np.array([[1.5, 0], [0, 0]], np.float32)), FEED[1])
CASE = Case(to_program(Model(GRAPH, {"": 18}, ir_version=9)), (FEED,))
STORY = UpstreamStory(CASE.program.payload, FEED, RIGHT, "full", (), "wrong", "", "test_wrong")


def test_a_wrong_result_is_run_and_held_against_the_right_one() -> None:
    (files,) = upstream_files(FUNCTION, [STORY])
    text = files["upstream_test.mlir"]
    compiles, *rest = text.splitlines()
    assert compiles.startswith("// RUN: iree-compile %s --iree-input-type=onnx")
    assert compiles.endswith("--iree-opt-level=O3 --iree-opt-data-tiling=true -o %t.vmfb")
    assert rest[0].startswith("// RUN: iree-run-module")
    assert "--input=2x2xf32=1.5,-2.0,0.0,-1.0" in text
    assert "--expected_output=2x2xf32=1.5,0.0,0.0,0.0" in text
    assert "--input=2xi8=-56,3" in text, "integers have no signedness"
    assert 'torch.operator "onnx.Relu"' in text
    assert json.loads(files["expected_failures.json"]) == {"expected_run_failures": ["test_wrong"]}


def test_a_failure_of_the_compiler_needs_no_values() -> None:
    truth = TensorType("bool", (2,))
    graph = Graph("g", (ValueInfo("b", truth),), (ValueInfo("n", truth),), (Node("Not", ("b",), ("n",)),))
    payload = to_program(Model(graph, {"": 18}, ir_version=9)).payload
    at_run = replace(STORY, payload=payload, feed=(tensor(np.array([True, False])),), expected=None)
    refused = replace(at_run, kind="exception", stage="compile", name="test_refused")
    files, none = upstream_files(FUNCTION, [refused, at_run])
    assert "iree-run-module" not in files["upstream_test.mlir"]
    assert json.loads(files["expected_failures.json"]) == {"expected_compile_failures": ["test_refused"]}
    assert none == {}, "truth values stand in no flag"


def test_a_story_that_fails_spoils_no_other() -> None:
    broken = replace(STORY, payload=b"no model")
    none, files = upstream_files(FUNCTION, [broken, STORY])
    assert none == {}
    assert "upstream_test.mlir" in files
