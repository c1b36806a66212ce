"""The toy's reductions over no axes against onnx's reference evaluator."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from miscompile.core.case import Port, Program
from miscompile.core.run import Build
from miscompile.core.tensor import tensor
from miscompile.targets.toy.about import ABOUT
from miscompile.targets.toy.adapter import ToyAdapter
from miscompile.targets.toy.kernels.table import OPERATORS


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("op", sorted(name for name in OPERATORS if name.startswith("Reduce")))
def test_a_reduction_over_no_axes_maps_every_element(op: str, keepdims: int) -> None:
    x = np.array([[0.5, 2.0], [3.0, 4.0]], np.float32)
    node = helper.make_node(op, ["x", "axes"], ["y"], keepdims=keepdims, noop_with_empty_axes=1)
    info = helper.make_tensor_value_info
    axes = helper.make_tensor("axes", TensorProto.INT64, [0], [])
    graph = helper.make_graph(
        [node], "g", [info("x", TensorProto.FLOAT, [2, 2])], [info("y", TensorProto.FLOAT, [2, 2])], [axes]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    (wanted,) = ReferenceEvaluator(model).run(None, {"x": x.copy()})  # it may write into its feed
    ports = (Port("x", "float32", (2, 2)),)
    for level in ABOUT.levels:
        session = ToyAdapter().build(Program("onnx", model.SerializeToString(), ports, ()), Build(level))
        (found,) = session.run((tensor(x),))
        assert found is not None
        np.testing.assert_allclose(found.array, wanted, rtol=1e-6)
