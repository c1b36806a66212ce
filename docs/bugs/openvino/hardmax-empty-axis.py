"""OpenVINO (CPU): Hardmax gives elements to an empty axis

Hardmax of a tensor whose last axis has no elements gives that axis one element, which nobody writes, where another axis is asked for.

Seen with openvino 2026.4.1.

Exit code 1 when the bug shows, 0 when it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

x = np.zeros((2, 0), np.float32)
expected = x
node = helper.make_node("Hardmax", ["x"], ["y"], axis=0)
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 0])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 0])]
graph = helper.make_graph([node], "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)

print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model; the result has the shape of the operand")
core = ov.Core()
compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
found = compiled([x])[0]
wrong = found.shape != expected.shape or not np.array_equal(found, expected)
print("BUG:" if wrong else "right:", "OpenVINO gives", found.tolist(), "of shape", found.shape)
sys.exit(int(wrong))
