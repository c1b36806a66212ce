"""ONNX Runtime (CPU): an error with MatMulIntegerToFloatFusion

MatMulIntegerToFloatFusion makes a MatMulIntegerToFloat of int8 by uint8, for which there is no kernel, of a
MatMulInteger that has one.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("MatMulInteger", ["x1", "c0"], ["v0"]),
    helper.make_node("Mul", ["x0", "x0"], ["v1"]),
    helper.make_node("Cast", ["v0"], ["v2"], to=1),
    helper.make_node("Mul", ["v2", "v1"], ["v3"]),
]
inputs = [
    helper.make_tensor_value_info("x0", TensorProto.FLOAT, []),
    helper.make_tensor_value_info("x1", TensorProto.INT8, [1]),
]
outputs = [helper.make_tensor_value_info("v3", TensorProto.FLOAT, [])]
constants = [
    numpy_helper.from_array(np.array([0], np.uint8), "c0"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)

feeds = [
    {"x0": np.array(0.0, np.float32), "x1": np.array([0], np.int8)},
]

# To blame: MatMulIntegerToFloatFusion.


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
