"""OpenVINO (CPU): wrong values of Loop

In the body of a Loop, an Xor of a reshaped outer value writes its result over that value, so that the next trip
reads the result.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

body_inputs = [
    helper.make_tensor_value_info("i", TensorProto.INT64, []),
    helper.make_tensor_value_info("going", TensorProto.BOOL, []),
    helper.make_tensor_value_info("state", TensorProto.BOOL, [1, 1]),
]

body_outputs = [
    helper.make_tensor_value_info("going", TensorProto.BOOL, []),
    helper.make_tensor_value_info("next", TensorProto.BOOL, [1, 1]),
]
body_nodes = [helper.make_node("Reshape", ["x", "shape"], ["v"]), helper.make_node("Xor", ["v", "true"], ["next"])]
body = helper.make_graph(body_nodes, "body", body_inputs, body_outputs)
nodes = [helper.make_node("Loop", ["trips", "", "start"], ["y"], body=body)]
inputs = [helper.make_tensor_value_info("x", TensorProto.BOOL, [1])]
outputs = [helper.make_tensor_value_info("y", TensorProto.BOOL, [1, 1])]
constants = [
    numpy_helper.from_array(np.array(2, np.int64), "trips"),
    numpy_helper.from_array(np.array([[False]]), "start"),
    numpy_helper.from_array(np.array([1, 1], np.int64), "shape"),
    numpy_helper.from_array(np.array(True), "true"),
]
feeds = [np.array([False])]
expected = np.array([[True]])  # no trip depends on the one before
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def run():
    """Compile with the default passes, with float32 as it is; return the outputs."""
    core = ov.Core()
    compiled = core.compile_model(
        core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
    )
    request = compiled.create_infer_request()
    for place, value in enumerate(feeds):
        request.set_input_tensor(place, ov.Tensor(np.asarray(value, order="C")))
    request.infer()
    return [np.array(request.get_output_tensor(place).data) for place in range(len(outputs))]


print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
found = run()[0]
if found.shape != expected.shape or not np.allclose(found, expected, rtol=1e-4, atol=1e-4, equal_nan=True):
    print(f"BUG: {found.tolist()} instead of {expected.tolist()}")
    sys.exit(1)
print("the bug does not show")
