"""ONNX Runtime (CPU): a valid model raises an error

what was seen, in a line

Seen with onnxruntime 1.99.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

nodes = [
    helper.make_node("Gather", ["x", "i"], ["y"]),
]
inputs = [
    helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3]),
    helper.make_tensor_value_info("i", TensorProto.INT64, [1]),
]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])]
graph = helper.make_graph(nodes, "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)

feeds = [
    {"x": np.zeros((2, 3), np.float32), "i": np.array([9], np.int64)},
]

OFF = []


def run(level, off=()):
    """Build at `level` without the passes `off`; return the outputs for each feed."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"], disabled_optimizers=list(off)
    )
    return [session.run(None, feed) for feed in feeds]


print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
try:
    run(ort.GraphOptimizationLevel.ORT_ENABLE_ALL, OFF)
except Exception as error:
    print("BUG: level full raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
print("the bug does not show")
