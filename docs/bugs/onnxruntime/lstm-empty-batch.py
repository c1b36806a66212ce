"""ONNX Runtime (CPU): the process dies in LSTM

The kernel of LSTM ends the process for a batch without elements.

Seen with onnxruntime 1.32.0.

This script dies when the bug shows (of signal 6). Exit code 0: it does not show.
"""

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("LSTM", ["c1", "c0", "c0"], ["v0", "v1"], hidden_size=2, direction="bidirectional"),
]
inputs = []
outputs = [helper.make_tensor_value_info("v1", TensorProto.FLOAT, [2, 0, 2])]
constants = [
    numpy_helper.from_array(np.zeros((2, 8, 2), np.float32), "c0"),
    numpy_helper.from_array(np.zeros((1, 0, 2), np.float32), "c1"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)

feeds = [
    {},
]



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
print("DIES: level off kills this process at run", flush=True)
run(ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
print("the bug does not show")
