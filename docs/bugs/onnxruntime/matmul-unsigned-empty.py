"""ONNX Runtime (CPU): an error of MatMul

MatMul of uint32 or uint64 fails where the inner axis has no elements, because its kernel asks the result for signed
memory.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("MatMul", ["c1", "c1"], ["v0"]),
]
inputs = []
outputs = [helper.make_tensor_value_info("v0", TensorProto.UINT32, [])]
constants = [
    numpy_helper.from_array(np.zeros((0,), np.uint32), "c1"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)

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
try:
    run(ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
except Exception as error:
    print("BUG: level off raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
print("the bug does not show")
