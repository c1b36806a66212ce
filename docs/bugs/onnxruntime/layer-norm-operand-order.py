"""ONNX Runtime (CPU): wrong values with LayerNormFusion

LayerNormFusion does not check the order of the operands of Sub, Pow and Div.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("ReduceMean", ["x", "last"], ["v0"]),
    helper.make_node("Sub", ["v0", "x"], ["v1"]),
    helper.make_node("Pow", ["v1", "exponent"], ["v2"]),
    helper.make_node("ReduceMean", ["v2", "last"], ["v3"]),
    helper.make_node("Add", ["v3", "epsilon"], ["v4"]),
    helper.make_node("Sqrt", ["v4"], ["v5"]),
    helper.make_node("Div", ["v1", "v5"], ["v6"]),
    helper.make_node("Mul", ["v6", "scale"], ["v7"]),
    helper.make_node("Add", ["v7", "bias"], ["v8"]),
]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])]
outputs = [helper.make_tensor_value_info("v8", TensorProto.FLOAT, [1, 4])]
constants = [
    numpy_helper.from_array(np.array([-1], np.int64), "last"),
    numpy_helper.from_array(np.array(2, np.float32), "exponent"),
    numpy_helper.from_array(np.array(1e-5, np.float32), "epsilon"),
    numpy_helper.from_array(np.ones(4, np.float32), "scale"),
    numpy_helper.from_array(np.zeros(4, np.float32), "bias"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
feed = {"x": np.array([[1, 2, 4, 6]], np.float32)}


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
want = run(ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
got = run(ort.GraphOptimizationLevel.ORT_ENABLE_ALL)
if not np.allclose(want, got, rtol=1e-4, atol=1e-5):
    print("BUG: level full gives", got.tolist(), "instead of", want.tolist())
    sys.exit(1)
print("the bug does not show")
