"""ONNX Runtime (CPU): an error with ClipQuantRewrite

ClipQuantRewrite throws for a Clip without bounds in front of a QuantizeLinear to float8.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("Clip", ["x"], ["v0"]),
    helper.make_node("QuantizeLinear", ["v0", "scale", "zero"], ["v1"]),
    helper.make_node("DequantizeLinear", ["v1", "scale", "zero"], ["v2"]),
]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])]
outputs = [helper.make_tensor_value_info("v2", TensorProto.FLOAT, [3])]
constants = [
    numpy_helper.from_array(np.array(1, np.float32), "scale"),
    helper.make_tensor("zero", TensorProto.FLOAT8E4M3FN, [], [0]),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
feed = {"x": np.array([-1, 2, -3], np.float32)}


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
