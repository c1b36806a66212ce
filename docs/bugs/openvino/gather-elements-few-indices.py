"""OpenVINO (CPU): GatherElements of fewer indices is refused

The ONNX front end refuses a GatherElements whose indices are fewer than the data along another axis than the one gathered along, which ONNX allows.

Seen with openvino 2026.4.1.

Exit code 1 when the bug shows, 0 when it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

x = np.arange(6, dtype=np.float32).reshape(2, 3)
expected = np.array([[2, 0]], np.float32)  # y[i, j] = x[i, indices[i, j]]
node = helper.make_node("GatherElements", ["x", "indices"], ["y"], axis=1)
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])]
graph = helper.make_graph([node], "g", inputs, outputs, [numpy_helper.from_array(np.array([[2, 0]]), "indices")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)

print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model; the result is [[2, 0]]")
core = ov.Core()
try:
    compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
except RuntimeError as error:
    print("BUG:", str(error).strip())
    sys.exit(1)
found = compiled([x])[0]
print("OpenVINO:", found.tolist())
sys.exit(int(not np.array_equal(found, expected)))
