"""OpenVINO (CPU): Resize ignores keep_aspect_ratio_policy

The ONNX front end ignores keep_aspect_ratio_policy of a Resize, and stretches the image to the sizes where ONNX adjusts them.

Seen with openvino 2026.4.1.

Exit code 1 when the bug shows, 0 when it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

x = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)
expected = x.repeat(2, axis=2).repeat(2, axis=3)  # both axes by the smaller factor, 2
node = helper.make_node(
    "Resize", ["x", "", "", "sizes"], ["y"], axes=[2, 3], keep_aspect_ratio_policy="not_larger", mode="nearest"
)
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 2, 2])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 4, 4])]
graph = helper.make_graph([node], "g", inputs, outputs, [numpy_helper.from_array(np.array([4, 6]), "sizes")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)

print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model; the result has 4 rows and 4 columns")
core = ov.Core()
compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
found = compiled([x])[0]
wrong = found.shape != expected.shape or not np.array_equal(found, expected)
print("BUG:" if wrong else "right:", "OpenVINO gives", found.tolist(), "of shape", found.shape)
sys.exit(int(wrong))
