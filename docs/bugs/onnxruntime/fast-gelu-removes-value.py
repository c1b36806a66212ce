"""ONNX Runtime (CPU): an error with FastGeluFusion

FastGeluFusion removes the product with 0.5, although another node reads it.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("Pow", ["x0", "c0"], ["v0"]),
    helper.make_node("Mul", ["v0", "c1"], ["v1"]),
    helper.make_node("Add", ["x0", "v1"], ["v2"]),
    helper.make_node("Mul", ["v2", "c2"], ["v3"]),
    helper.make_node("Tanh", ["v3"], ["v4"]),
    helper.make_node("Add", ["v4", "c3"], ["v5"]),
    helper.make_node("Mul", ["x0", "c4"], ["v6"]),
    helper.make_node("Mul", ["v6", "v5"], ["v7"]),
    helper.make_node("Add", ["v6", "v7"], ["v8"]),
]
inputs = [helper.make_tensor_value_info("x0", TensorProto.FLOAT, [])]
outputs = [helper.make_tensor_value_info("v8", TensorProto.FLOAT, [])]
constants = [
    numpy_helper.from_array(np.array(3.0, np.float32), "c0"),
    numpy_helper.from_array(np.array(0.044715, np.float32), "c1"),
    numpy_helper.from_array(np.array(0.7978846, np.float32), "c2"),
    numpy_helper.from_array(np.array(1.0, np.float32), "c3"),
    numpy_helper.from_array(np.array(0.5, np.float32), "c4"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)

feeds = [
    {"x0": np.array(0.0, np.float32)},
]

# To blame: FastGeluFusion.


def run(level, off=()):
    """Build at `level` without the passes `off`; return the outputs for each feed."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    payload, providers = model.SerializeToString(), ["CPUExecutionProvider"]
    session = ort.InferenceSession(payload, options, providers, disabled_optimizers=list(off))
    return [session.run(None, feed) for feed in feeds]


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
