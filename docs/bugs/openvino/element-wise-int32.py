"""OpenVINO (CPU): Equal, Less, Mod, Relu and PRelu of int32 are computed in float32

The element-wise kernels of the CPU plugin take int32 for float32 in operations that they have for float32 only, so that
integers above 2**24 are rounded: 16777216 and 16777217 are equal.

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
    ("Equal", [N, N + 1], TensorProto.BOOL, False),
    ("Less", [N, N + 1], TensorProto.BOOL, True),
    ("Mod", [N + 1, N], TensorProto.INT32, 1),
    ("Relu", [N + 1], TensorProto.INT32, N + 1),
    ("PRelu", [N + 1, 2], TensorProto.INT32, N + 1),
]


def make(op, count, kind):
    names = ["a", "b"][:count]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT32, [1]) for name in names]
    outputs = [helper.make_tensor_value_info("y", kind, [1])]
    graph = helper.make_graph([helper.make_node(op, names, ["y"])], "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)


def compute(model, feeds):
    """Run the checked model with float32 as the precision of inference, and return its first result."""
    onnx.checker.check_model(model, full_check=True)
    core = ov.Core()
    read = core.read_model(model.SerializeToString())
    return core.compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(feeds)[0]


print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
wrong = False
for op, values, kind, expected in CASES:
    found = compute(make(op, len(values), kind), [np.array([value], np.int32) for value in values])[0]
    print(op, values, "OpenVINO:", found, "expected:", expected)
    wrong |= bool(found != expected)
print("BUG: integers are rounded to float32" if wrong else "no bug")
sys.exit(int(wrong))
