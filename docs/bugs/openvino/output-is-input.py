"""OpenVINO (CPU): a result is not written

A result that is an input of the model, as that of Max of one operand, is not written to the tensor of set_output_tensor where
the input is set before it.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

nodes = [helper.make_node("Max", ["x"], ["y"])]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])]
graph = helper.make_graph(nodes, "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)

print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
core = ov.Core()
request = core.compile_model(core.read_model(model.SerializeToString()), "CPU").create_infer_request()
expected, memory = np.arange(4, dtype=np.float32), np.full(4, -7, np.float32)
request.set_input_tensor(0, ov.Tensor(expected))
request.set_output_tensor(0, ov.Tensor(memory, shared_memory=True))
request.infer()
if not np.array_equal(memory, expected):
    print("BUG: the result holds", memory.tolist(), "instead of", expected.tolist())
    sys.exit(1)
print("the bug does not show")
