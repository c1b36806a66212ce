"""OpenVINO (CPU): the second inference gives other values

An element-wise node writes its result over that of a Conv, DFT or DequantizeLinear of constants, which runs once, so that the
second inference gives other values.

Constant folding lacks the three operators. DequantizeLinear shows it with a zero point that is an input, in front of a
MatMul.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

nodes = [helper.make_node("DFT", ["c"], ["v"], axis=1), helper.make_node("Sub", ["v", "x"], ["y"])]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 2])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, 2])]
constants = [numpy_helper.from_array(np.array([[[1, 2], [3, 4]]], np.float32), "c")]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
core = ov.Core()
compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
request = compiled.create_infer_request()
request.set_input_tensor(0, ov.Tensor(np.ones((1, 2, 2), np.float32)))
results = []
for _ in range(3):
    request.infer()
    results.append(np.array(request.get_output_tensor(0).data).ravel().tolist())
expected = [3, 5, -3, -3]  # [1 + 3, 2 + 4, 1 - 3, 2 - 4] less 1
print("expected three times", expected)
if not np.allclose(results, expected):
    print("BUG: three inferences on the same input give", *results)
    sys.exit(1)
print("the bug does not show")
