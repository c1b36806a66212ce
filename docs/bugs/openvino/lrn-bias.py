"""OpenVINO (CPU): LRN truncates its bias

The CPU plugin keeps the bias of LRN as an integer, so that a bias of 0.5 becomes 0. With alpha=0 and beta=1, and so
for every element, ONNX has x / bias.

Seen with openvino 2026.4.1.

Exit code 1 when the bug shows, 0 when it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

node = helper.make_node("LRN", ["x"], ["y"], size=1, alpha=0.0, beta=1.0, bias=2.5)
inputs = [
    helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 1, 2]),
]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 1, 2])]
graph = helper.make_graph([node], "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
x = np.array([[[[5, 10]]]], np.float32)
expected = x / np.float32(2.5)


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
