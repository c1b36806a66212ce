"""OpenVINO (CPU): wrong shape of DFT

The ONNX front end leaves the last axis of a real signal, of size 1, in the result of a DFT with onesided=1.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

nodes = [helper.make_node("DFT", ["x"], ["y"], axis=1, onesided=1)]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 5, 1])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3, 2])]
constants = []
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


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
expected = np.zeros((1, 3, 2), np.float32)  # 3 of 5 frequencies, and real and imaginary part
found = run([np.arange(5, dtype=np.float32).reshape(1, 5, 1)])[0]
if (found.dtype, found.shape) != (expected.dtype, expected.shape):
    print(f"BUG: {found.dtype} of shape {found.shape} instead of {expected.dtype} of shape {expected.shape}")
    sys.exit(1)
print("the bug does not show")
