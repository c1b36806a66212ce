"""ONNX Runtime (CPU): an error with SkipLayerNormFusion

SkipLayerNormFusion takes a scale or bias of length 1, which LayerNormalization broadcasts and
SkipLayerNormalization refuses.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("Add", ["x0", "x0"], ["v0"]),
    helper.make_node("LayerNormalization", ["v0", "c0"], ["v1"]),
]
inputs = [helper.make_tensor_value_info("x0", TensorProto.FLOAT, [1, 1, 2])]
outputs = [helper.make_tensor_value_info("v1", TensorProto.FLOAT, [1, 1, 2])]
constants = [
    numpy_helper.from_array(np.array([0.0], np.float32), "c0"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)

feeds = [
    {"x0": np.array([[[0.0, 0.0]]], np.float32)},
]

# To blame: SkipLayerNormFusion.


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
