"""OpenVINO (CPU): Constant with value_ints is refused

The ONNX front end refuses the attributes value_float, value_floats, value_int and value_ints of Constant in opset 12, which has them, and takes them from opset 13 on.

Seen with openvino 2026.4.1.

Exit code 1 when the bug shows, 0 when it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

expected = np.array([1, 2])
node = helper.make_node("Constant", [], ["y"], value_ints=[1, 2])
outputs = [helper.make_tensor_value_info("y", TensorProto.INT64, [2])]
graph = helper.make_graph([node], "g", [], outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)], ir_version=8)

print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model; the constant is [1, 2]")
core = ov.Core()
try:
    compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
except RuntimeError as error:
    print("BUG:", str(error).strip())
    sys.exit(1)
found = compiled([])[0]
print("OpenVINO:", found.tolist())
sys.exit(int(not np.array_equal(found, expected)))
