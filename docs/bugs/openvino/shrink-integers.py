"""OpenVINO (CPU): Shrink of integers truncates its bias

The ONNX front end makes an integer of the bias of Shrink where the data are integers. With lambd=1.5 and bias=1.5, ONNX
makes 0.5 of 2, which is 0 as an integer, but OpenVINO computes 2 - 1.

Seen with openvino 2026.4.1.

Exit code 1 when the bug shows, 0 when it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

node = helper.make_node("Shrink", ["x"], ["y"], lambd=1.5, bias=1.5)
inputs = [
    helper.make_tensor_value_info("x", TensorProto.INT32, [5]),
]
outputs = [helper.make_tensor_value_info("y", TensorProto.INT32, [5])]
graph = helper.make_graph([node], "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=8)
x = np.array([-2, -1, 0, 1, 2], np.int32)
expected = np.zeros(5, np.int32)


def compute(model, feeds):
    """Run the checked model with float32 as the precision of inference, and return its first result."""
    onnx.checker.check_model(model, full_check=True)
    core = ov.Core()
    read = core.read_model(model.SerializeToString())
    return core.compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(feeds)[0]


print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
found = compute(model, [x])
print("OpenVINO:", found.tolist(), "expected:", expected.tolist())
if not np.array_equal(found, expected):
    print("BUG: the values differ")
    sys.exit(1)
