"""OpenVINO (CPU): reductions of int32 are computed in float32

ReduceMax, ReduceMin, ReduceSum, ReduceMean and ReduceSumSquare of int32 are computed in float32 by the CPU plugin, so
that integers above 2**24 are rounded, even where one of them is to be selected. ReduceProd is right.

Seen with openvino 2026.4.1.

Exit code 1 when the bug shows, 0 when it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

N = 2**24
CASES = [
    ("ReduceMax", [N, N + 1], N + 1),
    ("ReduceMin", [-N, -N - 1], -N - 1),
    ("ReduceSum", [N, 1], N + 1),
    ("ReduceMean", [N + 1, N + 1], N + 1),
    ("ReduceSumSquare", [4097, 0], 4097**2),
]


def make(op):
    inputs = [helper.make_tensor_value_info("x", TensorProto.INT32, [2])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.INT32, [1])]
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)], ir_version=8)


def compute(model, feeds):
    """Run the checked model with float32 as the precision of inference, and return its first result."""
    onnx.checker.check_model(model, full_check=True)
    core = ov.Core()
    read = core.read_model(model.SerializeToString())
    return core.compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(feeds)[0]


print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
wrong = False
for op, values, expected in CASES:
    found = compute(make(op), [np.array(values, np.int32)])[0]
    print(op, values, "OpenVINO:", found, "expected:", expected)
    wrong |= bool(found != expected)
print("BUG: integers are rounded to float32" if wrong else "no bug")
sys.exit(int(wrong))
