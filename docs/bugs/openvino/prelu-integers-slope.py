"""OpenVINO (CPU): wrong values of PRelu

The CPU plugin takes the slope of a PRelu of integers for its data where the slope is the result of Min or Relu.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

nodes = [helper.make_node("Relu", ["z"], ["slope"]), helper.make_node("PRelu", ["x", "slope"], ["y"])]
inputs = [
    helper.make_tensor_value_info("x", TensorProto.INT32, [3]),
    helper.make_tensor_value_info("z", TensorProto.INT32, [3]),
]
outputs = [helper.make_tensor_value_info("y", TensorProto.INT32, [3])]
constants = []
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
expected = np.array([-1, -10, 3], np.int32)  # data * slope where the data are negative, and the data elsewhere
found = run([np.array([-1, -2, 3], np.int32), np.array([1, 5, 7], np.int32)])[0]
if found.shape != expected.shape or not np.allclose(found, expected, rtol=1e-4, atol=1e-5, equal_nan=True):
    print(f"BUG: {found.tolist()} instead of {expected.tolist()}")
    sys.exit(1)
print("the bug does not show")
