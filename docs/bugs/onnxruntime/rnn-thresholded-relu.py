"""ONNX Runtime (CPU): wrong values with RNN, GRU

RNN and GRU with the activation ThresholdedRelu and no activation_alpha take 0 for alpha. ONNX's page says that defaults
are those of the operator of the name, and alpha of ThresholdedRelu is 1.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

nodes = [helper.make_node("RNN", ["x", "w", "r"], ["", "y"], hidden_size=1, activations=["ThresholdedRelu"])]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 1])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 1])]
constants = [
    numpy_helper.from_array(np.ones((1, 1, 1), np.float32), "w"),
    numpy_helper.from_array(np.zeros((1, 1, 1), np.float32), "r"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)

feed = {"x": np.full((1, 1, 1), 0.5, np.float32)}


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
found = float(run(ort.GraphOptimizationLevel.ORT_DISABLE_ALL)[0].item())
if found != 0:
    print("BUG: ThresholdedRelu of 0.5 is", found, "instead of 0")
    sys.exit(1)
print("the bug does not show")
