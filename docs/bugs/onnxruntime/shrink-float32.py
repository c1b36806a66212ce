"""ONNX Runtime (CPU): wrong values of Shrink

Shrink computes float64 and integers in float32. With bias 0 it should keep all numbers above lambd, which is 0.5.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

feed = {
    "x": np.array([1.0000000001, 16777217.5], np.float64),
    "i": np.array([16777217, -16777219, 2**31 - 1], np.int32),
}
nodes = [helper.make_node("Shrink", ["x"], ["y"]), helper.make_node("Shrink", ["i"], ["j"])]
inputs = [
    helper.make_tensor_value_info("x", TensorProto.DOUBLE, [2]),
    helper.make_tensor_value_info("i", TensorProto.INT32, [3]),
]
outputs = [
    helper.make_tensor_value_info("y", TensorProto.DOUBLE, [2]),
    helper.make_tensor_value_info("j", TensorProto.INT32, [3]),
]
graph = helper.make_graph(nodes, "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)


def run(level):
    """Build at `level`; return the outputs."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feed)


print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
found = run(ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
if any((got != want).any() for got, want in zip(found, feed.values(), strict=True)):
    for got, want in zip(found, feed.values(), strict=True):
        print("BUG: level off gives", got.tolist(), "instead of", want.tolist())
    sys.exit(1)
print("the bug does not show")
