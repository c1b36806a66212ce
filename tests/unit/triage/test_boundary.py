"""The boundary of a bug: what shows it and what does not, by programs that were run."""

import random

import numpy as np
from virtual_compiler import FLOAT, VirtualCompiler, Wrong, case_of, pair

from miscompile.core.examination import examine
from miscompile.core.run import Build
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Violated
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.triage.boundary import boundary_of
from miscompile.triage.reduce.engine import Budget
from miscompile.triage.reduce.graphs import GraphDrafts

UNLIMITED = Budget(1000, lambda: False)


def wrong_for_float32_of_rank_two_with_a_constant(model: Model, build: Build) -> Wrong | None:
    if build.level == "off" or "c" not in model.graph.initializers or not model.graph.inputs:
        return None
    kind = model.graph.inputs[0].type
    assert isinstance(kind, TensorType)
    assert kind.shape is not None
    return Wrong(0) if kind.dtype == "float32" and len(kind.shape) == 2 and kind.shape[0] == 3 else None


def test_each_aspect_lists_what_shows_the_bug_and_what_does_not() -> None:
    graph = Graph(
        "g", (ValueInfo("x", FLOAT),), (ValueInfo("y", FLOAT),), (Node("Add", ("x", "c"), ("y",)),),
        {"c": tensor(np.ones((), np.float32))},
    )  # fmt: skip
    case = case_of(Model(graph, {"": 18}), {"x": np.ones((3, 4), np.float32)})
    compiler = VirtualCompiler([wrong_for_float32_of_rank_two_with_a_constant])
    seen = examine(case, pair(), compiler, random.Random(0))
    assert isinstance(seen.verdict, Violated)
    found = boundary_of(case, pair(), seen.verdict.evidence, seen.faulty, GraphDrafts(compiler), compiler, 0, UNLIMITED)
    assert found["rank of `x`"] == {"shows": ["2"], "works": ["3", "4"]}
    assert found["`c`"] == {"shows": ["a constant"], "works": ["an input"]}
    assert found["size 3 of `x`"]["shows"] == ["3"]
    assert "17" in found["size 3 of `x`"]["works"]
    assert found["size 4 of `x`"]["works"] == ["0"]
    assert found["element type of `x`, `c`"]["shows"] == ["float32"]
    assert "float64" in found["element type of `x`, `c`"]["works"]
    assert found["opset"]["shows"][0] == "18"


def test_a_spent_budget_leaves_nothing_to_say() -> None:
    graph = Graph("g", (ValueInfo("x", FLOAT),), (ValueInfo("y", FLOAT),), (Node("Relu", ("x",), ("y",)),), {})
    case = case_of(Model(graph, {"": 18}), {"x": np.ones((3, 4), np.float32)})
    compiler = VirtualCompiler([lambda model, build: Wrong(0) if build.level != "off" else None])
    seen = examine(case, pair(), compiler, random.Random(0))
    assert isinstance(seen.verdict, Violated)
    spent, drafts = Budget(1000, lambda: True), GraphDrafts(compiler)
    assert boundary_of(case, pair(), seen.verdict.evidence, seen.faulty, drafts, compiler, 0, spent) == {}
