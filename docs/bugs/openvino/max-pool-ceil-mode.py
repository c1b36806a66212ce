"""OpenVINO (CPU): MaxPool with ceil_mode has too many windows

MaxPool with ceil_mode=1 keeps windows that start behind the data, and gives the lowest float for them. ONNX leaves them
out: "Sliding windows that would start in the right padded region are ignored." AveragePool of OpenVINO leaves them out.

Seen with openvino 2026.4.1.

Exit code 1 when the bug shows, 0 when it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

x = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)
expected = x[:, :, ::2, ::2]  # the second window of each axis would start at 2, behind the data
node = helper.make_node("MaxPool", ["x"], ["y"], ceil_mode=1, kernel_shape=[1, 1], strides=[2, 2])
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 2, 2])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 1, 1])]
graph = helper.make_graph([node], "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)

print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model; there is one window")
core = ov.Core()
compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
found = compiled([x])[0]
wrong = found.shape != expected.shape or not np.array_equal(found, expected)
print("BUG:" if wrong else "right:", "OpenVINO gives", found.tolist(), "of shape", found.shape)
sys.exit(int(wrong))
