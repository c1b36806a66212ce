"""ONNX Runtime (CPU): no end

what was seen, in a line

Seen with onnxruntime 1.99.0.

This script dies when the bug shows. Exit code 0: it does not show.
"""

import signal

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("MatMul", ["x", "w"], ["v"]),
    helper.make_node("Add", ["v", "b"], ["y"]),
]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 2])]
constants = [
    numpy_helper.from_array(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32), "w"),
    numpy_helper.from_array(np.array([0.1, -2.0], np.float32), "b"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)

feeds = [
    {"x": np.arange(6, dtype=np.float32).reshape((2, 3))},
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
signal.alarm(30)  # seconds; the default action of this signal ends the process even inside the compiler
print("DIES: level full does not end; the alarm kills this process", flush=True)
run(ort.GraphOptimizationLevel.ORT_ENABLE_ALL, OFF)
print("the bug does not show")
