"""OpenVINO (CPU): Expand to a shape without elements that is fed is refused

ONNX broadcasts both ways, so that a shape without elements, that of a scalar, leaves the data as they are. OpenVINO
throws if the shape is an input; it is right if the shape is a constant.

Seen with openvino 2026.4.1.

Exit code 1 when the bug shows, 0 when it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

node = helper.make_node("Expand", ["x", "shape"], ["y"])
inputs = [
    helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2]),
    helper.make_tensor_value_info("shape", TensorProto.INT64, [0]),
]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])]
graph = helper.make_graph([node], "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
x = np.array([[1, 2]], np.float32)


def compute(model, feeds):
    """Run the checked model with float32 as the precision of inference, and return its first result."""
    onnx.checker.check_model(model, full_check=True)
    core = ov.Core()
    read = core.read_model(model.SerializeToString())
    return core.compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(feeds)[0]


print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
try:
    found = compute(model, [x, np.zeros(0, np.int64)])
except RuntimeError as error:
    print("BUG:", str(error).strip().splitlines()[-1])
    sys.exit(1)
print("OpenVINO:", found.tolist())
sys.exit(int(not np.array_equal(found, x)))
