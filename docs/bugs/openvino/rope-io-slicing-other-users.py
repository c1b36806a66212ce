"""OpenVINO (CPU): wrong shape with RoPEFusionIOSlicing

RoPEFusionIOSlicing puts the elements that are not rotated into the result of the rotation, although that result has other users.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("Split", ["x", "parts"], ["rotated", "rest"], axis=3),
    helper.make_node("Split", ["rotated", "halves"], ["left", "right"], axis=3),
    helper.make_node("Neg", ["right"], ["minus"]),
    helper.make_node("Concat", ["minus", "left"], ["turned"], axis=-1),
    helper.make_node("Mul", ["rotated", "cos"], ["v0"]),
    helper.make_node("Mul", ["turned", "sin"], ["v1"]),
    helper.make_node("Add", ["v0", "v1"], ["y"]),
    helper.make_node("Concat", ["y", "rest"], ["z"], axis=-1),
]
inputs = [
    helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 3, 12]),
    helper.make_tensor_value_info("cos", TensorProto.FLOAT, [1, 1, 3, 8]),
    helper.make_tensor_value_info("sin", TensorProto.FLOAT, [1, 1, 3, 8]),
]
outputs = [
    helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 2, 3, 12]),
    helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, 3, 8]),
]
constants = [numpy_helper.from_array(np.array([8, 4]), "parts"), numpy_helper.from_array(np.array([4, 4]), "halves")]
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
expected = np.zeros((1, 2, 3, 8), np.float32)  # 8 elements of the last axis are rotated
found = run([np.ones((1, 2, 3, 12), np.float32), np.ones((1, 1, 3, 8), np.float32), np.ones((1, 1, 3, 8), np.float32)])[1]
if (found.dtype, found.shape) != (expected.dtype, expected.shape):
    print(f"BUG: {found.dtype} of shape {found.shape} instead of {expected.dtype} of shape {expected.shape}")
    sys.exit(1)
print("the bug does not show")
