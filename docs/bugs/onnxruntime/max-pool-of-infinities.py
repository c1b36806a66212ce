"""ONNX Runtime (CPU): wrong values with MaxPool, GlobalMaxPool

MaxPool without its second result, and GlobalMaxPool, start with the lowest finite number instead of minus infinity. The
largest of two minus infinities comes out as -3.4e38; MaxPool with its second result has -inf.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

nodes = [
    helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2]),
    helper.make_node("GlobalMaxPool", ["x"], ["z"]),
]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 2])]
outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1, 1]) for name in ("y", "z")]
graph = helper.make_graph(nodes, "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)

feed = {"x": np.full((1, 1, 2), -np.inf, np.float32)}


def run(level):
    """Build at `level` and return the outputs."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return session.run(None, feed)


print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
found = [float(value.item()) for value in run(ort.GraphOptimizationLevel.ORT_DISABLE_ALL)]
if found != [-np.inf, -np.inf]:
    print("BUG: the largest of two minus infinities is", found)
    sys.exit(1)
print("the bug does not show")
