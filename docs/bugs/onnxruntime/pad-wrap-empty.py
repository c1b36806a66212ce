"""ONNX Runtime (CPU): an error of Pad

Pad with mode wrap fails for a tensor without elements ("Unexpected mode"), although the padded axis has elements.
The other modes pad this tensor.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

feed = {"x": np.zeros((0, 2), np.float32), "pads": np.array([0, 1, 0, 1])}
nodes = [helper.make_node("Pad", ["x", "pads"], ["y"], mode="wrap")]
inputs = [
    helper.make_tensor_value_info("x", TensorProto.FLOAT, [0, 2]),
    helper.make_tensor_value_info("pads", TensorProto.INT64, [4]),
]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [0, 4])]
graph = helper.make_graph(nodes, "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


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
try:
    run(ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
except Exception as error:
    print("BUG: level off raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
print("the bug does not show")
