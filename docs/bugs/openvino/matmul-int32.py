"""OpenVINO (CPU): MatMul of int32 is computed in float32

The CPU plugin multiplies matrices of int32 in float32, as do Gemm and Einsum, which are made of MatMul, so that sums
above 2**24 are rounded. Folded constants are right.

Seen with openvino 2026.4.1.

Exit code 1 when the bug shows, 0 when it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

node = helper.make_node("MatMul", ["a", "b"], ["y"])
inputs = [
    helper.make_tensor_value_info("a", TensorProto.INT32, [1, 1]),
    helper.make_tensor_value_info("b", TensorProto.INT32, [1, 1]),
]
outputs = [helper.make_tensor_value_info("y", TensorProto.INT32, [1, 1])]
graph = helper.make_graph([node], "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
a = np.array([[4097]], np.int32)
expected = np.array([[4097 * 4097]], np.int32)  # below 2**31


def compute(model, feeds):
    """Run the checked model with float32 as the precision of inference, and return its first result."""
    onnx.checker.check_model(model, full_check=True)
    core = ov.Core()
    read = core.read_model(model.SerializeToString())
    return core.compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(feeds)[0]


print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
found = compute(model, [a, a])
print("OpenVINO:", found.tolist(), "expected:", expected.tolist())
if not np.array_equal(found, expected):
    print("BUG: the values differ")
    sys.exit(1)
