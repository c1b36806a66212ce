"""OpenVINO (CPU): wrong shape with RMSFusion

RMSFusion loses the axes that only the epsilon of a root mean square has.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("Pow", ["x", "two"], ["v0"]),
    helper.make_node("ReduceMean", ["v0"], ["v1"]),
    helper.make_node("Add", ["v1", "epsilon"], ["v2"]),
    helper.make_node("Sqrt", ["v2"], ["v3"]),
    helper.make_node("Div", ["x", "v3"], ["y"]),
]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])]
constants = [
    numpy_helper.from_array(np.array(2, np.float32), "two"),
    numpy_helper.from_array(np.array([[1e-5]], np.float32), "epsilon"),
]
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
expected = np.ones((1, 2), np.float32)  # epsilon has two axes
found = run([np.ones(2, np.float32)])[0]
if (found.dtype, found.shape) != (expected.dtype, expected.shape):
    print(f"BUG: {found.dtype} of shape {found.shape} instead of {expected.dtype} of shape {expected.shape}")
    sys.exit(1)
print("the bug does not show")
