"""OpenVINO (CPU): Pad with minus infinity is refused

The ONNX front end refuses an infinite attribute, the value of Pad in opset 2 or the alpha of ThresholdedRelu, because Constant finds it out of the range of float32.

Seen with openvino 2026.4.1.

Exit code 1 when the bug shows, 0 when it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

x = np.ones(1, np.float32)
expected = np.array([1, -np.inf], np.float32)
node = helper.make_node("Pad", ["x"], ["y"], pads=[0, 1], value=float("-inf"))
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])]
graph = helper.make_graph([node], "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 10)], ir_version=8)

print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model; the result is [1, -inf]")
core = ov.Core()
try:
    compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
except RuntimeError as error:
    print("BUG:", str(error).strip())
    sys.exit(1)
found = compiled([x])[0]
print("OpenVINO:", found.tolist())
sys.exit(int(not np.array_equal(found, expected)))
