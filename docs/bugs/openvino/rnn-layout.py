"""OpenVINO (CPU): wrong shape of RNN

The ONNX front end ignores the attribute layout of RNN, GRU and LSTM.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

nodes = [helper.make_node("RNN", ["x", "w", "r"], ["y", "h"], layout=1, hidden_size=4)]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 1, 1])]
outputs = [
    helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 1, 1, 4]),
    helper.make_tensor_value_info("h", TensorProto.FLOAT, [2, 1, 4]),
]
constants = [
    numpy_helper.from_array(np.zeros((1, 4, 1), np.float32), "w"),
    numpy_helper.from_array(np.zeros((1, 4, 4), np.float32), "r"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)


def run(feed):
    """Compile with the default passes, with float32 as it is; return the outputs."""
    core = ov.Core()
    compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    for place, value in enumerate(feed):
        request.set_input_tensor(place, ov.Tensor(np.asarray(value, order="C")))
    request.infer()
    return [np.array(request.get_output_tensor(place).data) for place in range(len(outputs))]


print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
expected = np.zeros((2, 1, 4), np.float32)  # with layout=1 the batch, of size 2, is the first axis
found = run([np.zeros((2, 1, 1), np.float32)])[1]
if (found.dtype, found.shape) != (expected.dtype, expected.shape):
    print(f"BUG: {found.dtype} of shape {found.shape} instead of {expected.dtype} of shape {expected.shape}")
    sys.exit(1)
print("the bug does not show")
