"""ONNX Runtime (CPU): an error with TransposeOptimizer

TransposeOptimizer permutes the scales of a Resize with `axes` as if there were one for each axis.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("Transpose", ["x"], ["v0"], perm=[0, 3, 1, 2]),
    helper.make_node("Resize", ["v0", "", "scales"], ["v1"], mode="nearest", axes=[2, 3]),
    helper.make_node("Transpose", ["v1"], ["v2"], perm=[0, 2, 3, 1]),
]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 2, 3])]
outputs = [helper.make_tensor_value_info("v2", TensorProto.FLOAT, [1, 4, 4, 3])]
constants = [numpy_helper.from_array(np.array([2, 2], np.float32), "scales")]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
feed = {"x": np.ones((1, 2, 2, 3), np.float32)}


def run(level):
    """Build at `level`; return the first output."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feed)[0]


print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
run(ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
print("level off works")
try:
    run(ort.GraphOptimizationLevel.ORT_ENABLE_ALL)
except Exception as error:
    print("BUG: level full raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
print("the bug does not show")
