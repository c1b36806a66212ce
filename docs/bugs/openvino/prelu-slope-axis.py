"""OpenVINO (CPU): wrong values of PRelu

PRelu with a slope of one axis applies it along axis 1 where the sizes agree, but ONNX broadcasts it along the last axis.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

nodes = [helper.make_node("PRelu", ["x", "slope"], ["y"])]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 3])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3, 3])]
constants = [numpy_helper.from_array(np.array([1, 10, 100], np.float32), "slope")]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)


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
expected = np.full((1, 3, 3), [-1, -10, -100], np.float32)  # the slope is broadcast along the last axis
found = run([-np.ones((1, 3, 3), np.float32)])[0]
if found.shape != expected.shape or not np.allclose(found, expected, rtol=1e-4, atol=1e-5, equal_nan=True):
    print(f"BUG: {found.tolist()} instead of {expected.tolist()}")
    sys.exit(1)
print("the bug does not show")
