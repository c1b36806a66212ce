"""Calls of onnx that end the process are refused where they are tried in a fork first."""

import os
import time

import numpy as np
import pytest

from miscompile.base.errors import ModelError
from miscompile.core.tensor import tensor
from miscompile.graph import careful as module
from miscompile.graph.attributes import attributes
from miscompile.graph.careful import careful, must_survive
from miscompile.graph.infer import infer
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.typing import value_types

F32 = TensorType("float32", (3, 1))


def test_outside_of_a_block_nothing_is_tried() -> None:
    must_survive(os.abort)


def test_a_call_that_aborts_is_refused() -> None:
    with careful(), pytest.raises(ModelError, match="dies of signal 6"):
        must_survive(os.abort)
    must_survive(os.abort)  # the block is over


def test_a_call_that_raises_or_returns_is_left_to_the_caller() -> None:
    with careful():
        must_survive(lambda: 1 // 0)
        must_survive(lambda: None)


def test_a_call_that_never_ends_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 1)
    with careful(), pytest.raises(ModelError, match="dies of signal 14"):
        must_survive(lambda: time.sleep(30))


def test_inference_of_a_split_with_more_results_than_it_says_ends_no_process() -> None:
    split = Node("Split", ("x",), ("a", "b"), attributes({"axis": -2, "num_outputs": 1}))
    graph = Graph("g", (), (ValueInfo("b", None),), (split,), {"x": tensor(np.zeros((3, 1), np.float32))})
    with careful(), pytest.raises(ModelError):
        value_types(Model(graph, {"": 19}))
    with careful(), pytest.raises(ModelError):
        infer(split, {"x": F32}, 19)


def test_valid_models_have_their_types() -> None:
    split = Node("Split", ("x",), ("a",), attributes({"axis": 0, "num_outputs": 1}))
    graph = Graph("g", (ValueInfo("x", F32),), (ValueInfo("a", None),), (split,), {})
    with careful():
        assert value_types(Model(graph, {"": 19}))["a"] == F32
        assert infer(split, {"x": F32}, 19) == (F32,)
