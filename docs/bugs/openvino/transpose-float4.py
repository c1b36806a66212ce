"""OpenVINO (CPU): Transpose of float4e2m1 takes elements for bytes

The CPU plugin takes an element of float4e2m1 for a whole byte in Transpose. It reads behind its data and writes behind its
result, which hold two elements a byte. Transpose of int4 and uint4 is right.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT4E2M1, [2, 4])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT4E2M1, [4, 2])]
graph = helper.make_graph([helper.make_node("Transpose", ["x"], ["y"])], "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)

print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
core = ov.Core()
compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
data, result = np.full(64, 0xDD, np.uint8), np.full(64, 0xEE, np.uint8)  # each needs 4 bytes
data[:4] = [0x10, 0x32, 0x54, 0x76]  # the elements 0 to 7, the first of two in the lower bits
request = compiled.create_infer_request()
request.set_input_tensor(0, ov.Tensor(data, ov.Shape([2, 4]), ov.Type.f4e2m1))
request.set_output_tensor(0, ov.Tensor(result, ov.Shape([4, 2]), ov.Type.f4e2m1))
request.infer()
found = [word >> shift & 15 for word in result[:4].tolist() for shift in (0, 4)]
expected = np.arange(8).reshape(2, 4).T.ravel().tolist()
behind = int((result[4:] != 0xEE).sum())
print("OpenVINO:", found, "expected:", expected, "bytes written behind the result:", behind)
if found != expected or behind:
    print("BUG: the values are wrong, or memory behind the result is written")
    sys.exit(1)
