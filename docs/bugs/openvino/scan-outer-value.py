"""OpenVINO (CPU): a Scan is refused

The ONNX front end refuses a Scan whose body uses a value of the outer graph that is no constant, because it counts that value among the inputs of the body.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

body = helper.make_graph(
    [helper.make_node("Add", ["row", "k"], ["sum"])],
    "body",
    [helper.make_tensor_value_info("row", TensorProto.FLOAT, [2])],
    [helper.make_tensor_value_info("sum", TensorProto.FLOAT, [2])],
)
nodes = [helper.make_node("Scan", ["x"], ["y"], body=body, num_scan_inputs=1)]
inputs = [
    helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 2]),
    helper.make_tensor_value_info("k", TensorProto.FLOAT, [2]),
]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 2])]
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
try:
    run([np.ones((3, 2), np.float32), np.ones(2, np.float32)])
except Exception as error:
    print("BUG: OpenVINO raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
print("the bug does not show")
