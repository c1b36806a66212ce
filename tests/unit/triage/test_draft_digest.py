"""The digest of a draft tells apart all that a run of it depends on."""

import numpy as np

from miscompile.core.tensor import tensor
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.triage.reduce.draft import Draft

KIND = TensorType("float32", (2,))


def draft(*feeds: dict[str, float], inputs: tuple[str, ...] = ("x",)) -> Draft:
    nodes = (Node("Neg", ("x",), ("y",)),)
    infos = tuple(ValueInfo(name, KIND) for name in inputs)
    graph = Graph("g", infos, (ValueInfo("y", KIND),), nodes)
    fed = tuple({name: tensor(np.full(2, value, np.float32)) for name, value in feed.items()} for feed in feeds)
    return Draft(Model(graph, {"": 18}), fed)


def test_what_is_fed_counts() -> None:
    assert draft({"x": 1}).digest == draft({"x": 1}).digest
    assert draft({"x": 1}).digest != draft({"x": 2}).digest
    assert draft({"x": 1}).digest != draft({"x": 1}, {"x": 1}).digest


def test_how_often_a_program_without_inputs_runs_counts() -> None:
    assert draft({}, inputs=()).digest != draft({}, {}, inputs=()).digest
