"""ONNX Runtime (CPU): an error with ReshapeFusion

ReshapeFusion writes -1 for an unknown size although another size is 0, and no Reshape can infer a size then.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("Concat", ["x0", "c0"], ["v0"], axis=0),
    helper.make_node("Reshape", ["c1", "v0"], ["v1"]),
]
inputs = [helper.make_tensor_value_info("x0", TensorProto.INT64, [1])]
outputs = [helper.make_tensor_value_info("v1", TensorProto.FLOAT, ["unk__0", 4, 0])]
constants = [
    numpy_helper.from_array(np.array([0, 0], np.int64), "c0"),
    numpy_helper.from_array(np.zeros((4, 4, 0), np.float32), "c1"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)

feeds = [
    {"x0": np.array([0], np.int64)},
]

# To blame: ReshapeFusion.


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
