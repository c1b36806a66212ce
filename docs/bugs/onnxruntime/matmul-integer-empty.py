"""ONNX Runtime (CPU): wrong values of MatMulInteger

MatMulInteger over an inner axis without elements does not write its result, which holds what was in memory. QLinearMatMul does
not either.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

nodes = [helper.make_node("MatMulInteger", ["x", "y"], ["v0"])]
inputs = [
    helper.make_tensor_value_info("x", TensorProto.UINT8, [2, 0]),
    helper.make_tensor_value_info("y", TensorProto.UINT8, [0, 3]),
]
outputs = [helper.make_tensor_value_info("v0", TensorProto.INT32, [2, 3])]
graph = helper.make_graph(nodes, "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
got = np.full((2, 3), 7, np.int32)  # the memory that the kernel has to fill
binding = session.io_binding()
binding.bind_cpu_input("x", np.zeros((2, 0), np.uint8))
binding.bind_cpu_input("y", np.zeros((0, 3), np.uint8))
binding.bind_output("v0", "cpu", 0, np.int32, got.shape, got.ctypes.data)
session.run_with_iobinding(binding)
if got.any():
    print("BUG: level off leaves", got.tolist(), "in memory instead of zeros")
    sys.exit(1)
print("the bug does not show")
