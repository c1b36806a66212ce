"""OpenVINO (CPU): wrong shape of Flatten

The ONNX front end makes a Reshape of Flatten that copies sizes of zero, so that a tensor without elements becomes one of other size, which nobody writes.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

nodes = [helper.make_node("Flatten", ["x"], ["y"], axis=2)]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 5, 0])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [15, 0])]
constants = []
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


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
expected = np.zeros((15, 0), np.float32)  # 3 * 5 rows without elements
found = run([np.zeros((3, 5, 0), np.float32)])[0]
if (found.dtype, found.shape) != (expected.dtype, expected.shape):
    print(f"BUG: {found.dtype} of shape {found.shape} instead of {expected.dtype} of shape {expected.shape}")
    sys.exit(1)
print("the bug does not show")
