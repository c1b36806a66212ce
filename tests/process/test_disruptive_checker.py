"""onnx's checker in its own process: it answers, and its death is an answer as well."""

from contextlib import closing

import pytest

from miscompile.graph.attributes import attributes
from miscompile.graph.emit import emit
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.producers.disruptive.checker import ChildChecker

pytestmark = pytest.mark.process


def test_it_answers_and_survives_a_death() -> None:
    checker = ChildChecker()
    try:
        first = checker(b"no model")
        assert first
        child = checker._child
        assert child is not None
        child.kill()
        assert checker(b"no model") is None
        assert checker(b"no model") == first
    finally:
        checker.close()
    assert checker._child is None


def test_it_infers_types_in_spite_of_an_error_and_survives_a_death() -> None:
    shape = TensorType("float32", (2, 3))
    nodes = (Node("Relu", ("x",), ("y",)), Node("Softmax", ("y",), ("z",), attributes({"axis": 7})))
    model = emit(Model(Graph("g", (ValueInfo("x", shape),), (), nodes), {"": 18}))
    with closing(ChildChecker()) as checker:
        assert checker.types(model)["y"] == ("float32", 2)
        assert "axis" in (checker(model) or "")
        child = checker._child
        assert child is not None
        child.kill()
        assert checker.types(model) == {}
        assert checker.types(model)["y"] == ("float32", 2)
