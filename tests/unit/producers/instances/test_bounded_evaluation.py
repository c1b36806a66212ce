"""Evaluation of instances in this process ends, whatever the condition of a Loop is."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from miscompile.base.errors import ModelError
from miscompile.graph.model import Model
from miscompile.graph.read import read
from miscompile.producers.instances import evaluation
from miscompile.producers.instances.evaluation import evaluated


def loop() -> Model:
    """Return a model with a Loop that adds 1 in each iteration, and whose condition stays as it is."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["cond_in"], ["cond_out"]),
            helper.make_node("Constant", [], ["one"], value_float=1.0),
            helper.make_node("Add", ["v_in", "one"], ["v_out"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("cond_in", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v_in", TensorProto.FLOAT, []),
        ],
        [
            helper.make_tensor_value_info("cond_out", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v_out", TensorProto.FLOAT, []),
        ],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["trips", "go", "v"], ["y"], body=body)],
        "g",
        [
            helper.make_tensor_value_info("trips", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, []),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return read(model.SerializeToString())


def feed(trips: int) -> dict[str, Any]:
    return {"trips": np.array(trips), "go": np.array(True), "v": np.array(0.5, np.float32)}


def test_a_loop_that_ends_is_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "MOST_ITERATIONS", 7)
    assert evaluated(loop(), feed(7))["y"] == np.float32(7.5)


def test_a_loop_that_does_not_end_soon_is_an_error() -> None:
    with pytest.raises(ModelError, match="has not ended after 10,000 iterations"):
        evaluated(loop(), feed(2**62))
