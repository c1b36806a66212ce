"""OpenVINO (CPU): BitShift of uint8 to the left saturates

BitShift of uint8 to the left gives 255 where bits are shifted out, instead of dropping these bits. 0b01100011 shifted
by 2 is 0b10001100. Wider types drop them at the run.

Seen with openvino 2026.4.1.

Exit code 1 when the bug shows, 0 when it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

node = helper.make_node("BitShift", ["a", "b"], ["y"], direction="LEFT")
inputs = [
    helper.make_tensor_value_info("a", TensorProto.UINT8, [2]),
    helper.make_tensor_value_info("b", TensorProto.UINT8, [2]),
]
outputs = [helper.make_tensor_value_info("y", TensorProto.UINT8, [2])]
graph = helper.make_graph([node], "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
a = np.array([0b01100011, 0b11111111], np.uint8)
b = np.array([2, 1], np.uint8)
expected = np.array([0b10001100, 0b11111110], np.uint8)


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
