"""OpenVINO (CPU): Identity writes behind its result

The CPU plugin copies an input of 4 bits an element to a result as if each element were a byte, and writes behind the result.

Two elements of int4 are in a byte. The same happens for uint4 and float4e2m1.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

nodes = [helper.make_node("Identity", ["x"], ["y"])]
inputs = [helper.make_tensor_value_info("x", TensorProto.INT4, [8, 8])]
outputs = [helper.make_tensor_value_info("y", TensorProto.INT4, [8, 8])]
graph = helper.make_graph(nodes, "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)

print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
core = ov.Core()
request = core.compile_model(core.read_model(model.SerializeToString()), "CPU").create_infer_request()
memory = np.full(256, 0xEE, np.uint8)  # the result needs 32 bytes
request.set_input_tensor(0, ov.Tensor(np.zeros(256, np.uint8), ov.Shape([8, 8]), ov.Type.i4))
request.set_output_tensor(0, ov.Tensor(memory, ov.Shape([8, 8]), ov.Type.i4))
request.infer()
behind = memory[32:]
if (behind != 0xEE).any():
    print("BUG:", np.count_nonzero(behind != 0xEE), "bytes behind the result were written; bytes 28 to 67 are now")
    print(memory[28:68].tolist())
    sys.exit(1)
print("the bug does not show")
