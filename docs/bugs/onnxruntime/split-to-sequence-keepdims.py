"""ONNX Runtime (CPU): an output of SplitToSequence has the wrong shape

SplitToSequence with keepdims 0 drops the split axis where `split` is a scalar. ONNX's page says of keepdims that it is
ignored if the input `split` is specified.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("SplitToSequence", ["x", "one"], ["parts"], keepdims=0),
    helper.make_node("SequenceAt", ["parts", "first"], ["y"]),
]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])]
constants = [
    numpy_helper.from_array(np.array(1, np.int64), "one"),
    numpy_helper.from_array(np.array(0, np.int64), "first"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)

feed = {"x": np.array([3, 5], np.float32)}


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
shape = run(ort.GraphOptimizationLevel.ORT_DISABLE_ALL)[0].shape
if shape != (1,):
    print("BUG: the first part has shape", shape, "instead of (1,)")
    sys.exit(1)
print("the bug does not show")
