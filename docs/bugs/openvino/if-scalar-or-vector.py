"""OpenVINO (CPU): If makes a vector of a scalar

An If of which one branch gives a scalar and the other a vector gives the scalar one axis.

Seen with openvino 2026.4.1.

Exit code 1 when the bug shows, 0 when it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

expected = np.zeros(0, np.int64)  # the shape of a scalar
then_branch = helper.make_graph(
    [helper.make_node("Identity", ["vector"], ["a"])], "t", [], [helper.make_tensor_value_info("a", TensorProto.FLOAT, [3])]
)
else_branch = helper.make_graph(
    [helper.make_node("Identity", ["scalar"], ["b"])], "e", [], [helper.make_tensor_value_info("b", TensorProto.FLOAT, [])]
)
nodes = [
    helper.make_node("If", ["condition"], ["v"], then_branch=then_branch, else_branch=else_branch),
    helper.make_node("Shape", ["v"], ["y"]),
]
inputs = [
    helper.make_tensor_value_info("condition", TensorProto.BOOL, []),
    helper.make_tensor_value_info("vector", TensorProto.FLOAT, [3]),
    helper.make_tensor_value_info("scalar", TensorProto.FLOAT, []),
]
outputs = [helper.make_tensor_value_info("y", TensorProto.INT64, [None])]
graph = helper.make_graph(nodes, "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)

print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model; the condition is false, so that the shape is that of a scalar")
core = ov.Core()
compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
found = compiled([np.array(False), np.zeros(3, np.float32), np.array(1, np.float32)])[0]
wrong = found.shape != expected.shape or not np.array_equal(found, expected)
print("BUG:" if wrong else "right:", "OpenVINO gives", found.tolist(), "of shape", found.shape)
sys.exit(int(wrong))
