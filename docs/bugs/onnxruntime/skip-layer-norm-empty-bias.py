"""ONNX Runtime (CPU): the process dies in SkipLayerNormFusion

SkipLayerNormFusion reads the type of the bias of a LayerNormalization, and dies where the name of the bias is
empty.

Seen with onnxruntime 1.32.0.

This script dies when the bug shows (of signal 11). Exit code 0: it does not show.
"""

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("LayerNormalization", ["x0", "c0", ""], ["v0"]),
]
inputs = [helper.make_tensor_value_info("x0", TensorProto.FLOAT, [1])]
outputs = [helper.make_tensor_value_info("v0", TensorProto.FLOAT, [1])]
constants = [
    numpy_helper.from_array(np.array(0.0, np.float32), "c0"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)

feeds = [
    {"x0": np.array([0.0], np.float32)},
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
try:
    onnx.checker.check_model(model, full_check=True)
    print("onnx's checker accepts the model")
except Exception as error:
    print("onnx's checker says of the model:", " ".join(str(error).split()))
run(ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
print("level off works")
print("DIES: level full kills this process at compile", flush=True)
run(ort.GraphOptimizationLevel.ORT_ENABLE_ALL)
print("the bug does not show")
