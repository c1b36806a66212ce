"""OpenVINO (CPU): LpNormalization of small numbers is wrong

The result is divided by a norm that an epsilon of about 1e-7 has been added to below the square root, which ONNX does
not have. A vector of the length 5e-4 gets the length 0.82, where ONNX has 1. With p=1 the error is smaller.

Seen with openvino 2026.4.1.

Exit code 1 when the bug shows, 0 when it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

node = helper.make_node("LpNormalization", ["x"], ["y"], axis=0, p=2)
inputs = [
    helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]),
]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])]
graph = helper.make_graph([node], "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
x = np.array([3e-4, 4e-4], np.float32)
expected = np.array([0.6, 0.8], np.float32)


def compute(model, feeds):
    """Run the checked model with float32 as the precision of inference, and return its first result."""
    onnx.checker.check_model(model, full_check=True)
    core = ov.Core()
    read = core.read_model(model.SerializeToString())
    return core.compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(feeds)[0]


print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
found = compute(model, [x])
print("OpenVINO:", found.tolist(), "expected:", expected.tolist())
if not np.allclose(found, expected, rtol=1e-3):
    print("BUG: the values differ")
    sys.exit(1)
