"""OpenVINO (CPU): Div of int32 is computed in float32

The CPU plugin divides integers of 32 bits in float32, so that 16777217 divided by 1 is 16777216.

Seen with openvino 2026.4.1.

Exit code 1 when the bug shows, 0 when it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

node = helper.make_node("Div", ["a", "b"], ["y"])
inputs = [
    helper.make_tensor_value_info("a", TensorProto.INT32, [2]),
    helper.make_tensor_value_info("b", TensorProto.INT32, [2]),
]
outputs = [helper.make_tensor_value_info("y", TensorProto.INT32, [2])]
graph = helper.make_graph([node], "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
a = np.array([2**24 + 1, 777777777], np.int32)
b = np.array([1, 11], np.int32)
expected = a // b  # all are positive


def compute(model, feeds):
    """Run the checked model with float32 as the precision of inference, and return its first result."""
    onnx.checker.check_model(model, full_check=True)
    core = ov.Core()
    read = core.read_model(model.SerializeToString())
    return core.compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(feeds)[0]


print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
found = compute(model, [a, b])
print("OpenVINO:", found.tolist(), "expected:", expected.tolist())
if not np.array_equal(found, expected):
    print("BUG: the values differ")
    sys.exit(1)
