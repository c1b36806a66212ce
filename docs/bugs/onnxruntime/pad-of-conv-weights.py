"""ONNX Runtime (CPU): an error with Pad_Fusion

Pad_Fusion takes a Pad that feeds the weights of a Conv for one that feeds the image.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("Pad", ["c2", "c0"], ["v0"]),
    helper.make_node("Conv", ["c1", "v0"], ["v1"]),
]
inputs = []
outputs = [helper.make_tensor_value_info("v1", TensorProto.FLOAT, [1, 1, 1, 1])]
constants = [
    numpy_helper.from_array(np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64), "c0"),
    numpy_helper.from_array(np.zeros((1, 1, 3, 3), np.float32), "c1"),
    numpy_helper.from_array(np.array([[[[0.0]]]], np.float32), "c2"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)

feeds = [
    {},
]

# To blame: Pad_Fusion.


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
