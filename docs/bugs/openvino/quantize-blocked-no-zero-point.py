"""OpenVINO (CPU): a blocked QuantizeLinear without zero point is refused

The ONNX front end refuses a blocked QuantizeLinear without a zero point, because it reshapes the scalar that it takes for it to the shape of the scales.

Seen with openvino 2026.4.1.

Exit code 1 when the bug shows, 0 when it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

x = np.arange(6, dtype=np.float32).reshape(2, 3)
expected = np.array([[0, 2, 4], [6, 8, 10]], np.uint8)  # x / 0.5
node = helper.make_node("QuantizeLinear", ["x", "scale"], ["y"], axis=1, block_size=3)
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])]
outputs = [helper.make_tensor_value_info("y", TensorProto.UINT8, [2, 3])]
graph = helper.make_graph([node], "g", inputs, outputs, [numpy_helper.from_array(np.full((2, 1), 0.5, np.float32), "scale")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)

print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model; every element is divided by 0.5")
core = ov.Core()
try:
    compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
except RuntimeError as error:
    print("BUG:", str(error).strip())
    sys.exit(1)
found = compiled([x])[0]
print("OpenVINO:", found.tolist())
sys.exit(int(not np.array_equal(found, expected)))
