"""ONNX Runtime (CPU): wrong values of Where

Where gives 0.0 for a -0.0 of its second input.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

nodes = [helper.make_node("Where", ["condition", "x", "y"], ["v0"])]
inputs = [
    helper.make_tensor_value_info("condition", TensorProto.BOOL, [1]),
    helper.make_tensor_value_info("x", TensorProto.FLOAT, [1]),
    helper.make_tensor_value_info("y", TensorProto.FLOAT, [1]),
]
outputs = [helper.make_tensor_value_info("v0", TensorProto.FLOAT, [1])]
graph = helper.make_graph(nodes, "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)
feed = {"condition": np.array([True]), "x": np.array([-0.0], np.float32), "y": np.array([1], np.float32)}


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
got = run(ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
if not np.signbit(got).all():
    print("BUG: level off gives", got.tolist(), "instead of", feed["x"].tolist())
    sys.exit(1)
print("the bug does not show")
