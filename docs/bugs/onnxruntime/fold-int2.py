"""ONNX Runtime (CPU): an error with ConstantFolding

ConstantFolding throws for a result of int2 or uint2 of more than 127 bytes.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("Transpose", ["constant"], ["v0"]),
    helper.make_node("DequantizeLinear", ["v0", "scale"], ["v1"]),
]
outputs = [helper.make_tensor_value_info("v1", TensorProto.FLOAT, [512])]
constants = [
    helper.make_tensor("constant", TensorProto.INT2, [512], bytes(128), raw=True),  # with 127 bytes it works
    numpy_helper.from_array(np.array(1, np.float32), "scale"),
]
graph = helper.make_graph(nodes, "g", [], outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)
feed = {}


def run(level):
    """Build at `level`; return the first output."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feed)[0]


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
