"""OpenVINO (CPU): BatchNormalization of several types is refused

The ONNX front end refuses a BatchNormalization whose data are float16 and whose scale, bias, mean or variance is float32, which ONNX allows since opset 15, because it does not convert them.

Seen with openvino 2026.4.1.

Exit code 1 when the bug shows, 0 when it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

x = np.ones((1, 1), np.float16)
expected = x  # 1 * (1 - 0) / 1 + 0
node = helper.make_node("BatchNormalization", ["x", "one", "zero", "zero", "one"], ["y"], epsilon=0.0)
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [1, 1])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT16, [1, 1])]
constants = [
    numpy_helper.from_array(np.ones(1, np.float32), "one"),
    numpy_helper.from_array(np.zeros(1, np.float32), "zero"),
]
graph = helper.make_graph([node], "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)

print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model; the result is 1")
core = ov.Core()
try:
    compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
except RuntimeError as error:
    print("BUG:", str(error).strip())
    sys.exit(1)
found = compiled([x])[0]
print("OpenVINO:", found.tolist())
sys.exit(int(not np.array_equal(found, expected)))
