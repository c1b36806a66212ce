"""ONNX Runtime (CPU): the process dies in BatchNormalization

BatchNormalization in training mode writes the running mean and variance to null where the name of one of these optional
outputs is empty.

Seen with onnxruntime 1.32.0.

This script dies when the bug shows (of signal 11). Exit code 0: it does not show.
"""

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

nodes = [
    helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y", "", "variance"], training_mode=1),
]
names = {"x": [2, 1, 2], "s": [1], "b": [1], "m": [1], "v": [1]}
inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in names.items()]
outputs = [
    helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 1, 2]),
    helper.make_tensor_value_info("variance", TensorProto.FLOAT, [1]),
]
graph = helper.make_graph(nodes, "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=10)

feed = {name: np.ones(shape, np.float32) for name, shape in names.items()}


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
print("DIES: level off kills this process at run", flush=True)
run(ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
print("the bug does not show")
