"""OpenVINO (CPU): wrong shape with PReluFusionMultiplySub

PReluFusionMultiplySub makes relu(x) - relu(-x) * slope to a PRelu, and loses the axes that only its constants have.

PReluFusionAbsSubMulMulAdd does the same to relu(x) + (x - |x|) * 0.5 * slope.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("Relu", ["x"], ["positive"]),
    helper.make_node("Mul", ["x", "minus"], ["v0"]),
    helper.make_node("Relu", ["v0"], ["v1"]),
    helper.make_node("Mul", ["v1", "slope"], ["negative"]),
    helper.make_node("Sub", ["positive", "negative"], ["y"]),
]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 2])]
constants = [
    numpy_helper.from_array(np.full((1, 1, 1), -1, np.float32), "minus"),
    numpy_helper.from_array(np.full((1, 1, 1), 0.25, np.float32), "slope"),
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
expected = np.array([[[-0.25, 1]]], np.float32)  # the constants have three axes
found = run([np.array([-1, 1], np.float32)])[0]
if (found.dtype, found.shape) != (expected.dtype, expected.shape):
    print(f"BUG: {found.dtype} of shape {found.shape} instead of {expected.dtype} of shape {expected.shape}")
    sys.exit(1)
print("the bug does not show")
