"""OpenVINO (CPU): Mod by infinity is NaN

Mod with fmod=1 is C's fmod in ONNX, where x is the remainder of a finite x and infinity. OpenVINO gives NaN.

Seen with openvino 2026.4.1.

Exit code 1 when the bug shows, 0 when it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

node = helper.make_node("Mod", ["a", "b"], ["y"], fmod=1)
inputs = [
    helper.make_tensor_value_info("a", TensorProto.FLOAT, [3]),
    helper.make_tensor_value_info("b", TensorProto.FLOAT, [3]),
]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])]
graph = helper.make_graph([node], "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
a = np.array([1, -3, 0], np.float32)
b = np.array([np.inf, np.inf, -np.inf], np.float32)
expected = np.fmod(a, b)  # 1, -3, 0


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
