"""OpenVINO (CPU): a Loop that collects its condition is refused

The ONNX front end refuses a Loop whose body returns its condition as it is and reads it as well, because it
replaces the condition by a constant but leaves the other reads.

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
    helper.make_tensor_value_info("state", TensorProto.FLOAT, [3]),
]

body_outputs = [
    helper.make_tensor_value_info("going", TensorProto.BOOL, []),
    helper.make_tensor_value_info("next", TensorProto.FLOAT, [3]),
    helper.make_tensor_value_info("seen", TensorProto.BOOL, []),
]
body_nodes = [helper.make_node("Identity", ["state"], ["next"]), helper.make_node("Identity", ["going"], ["seen"])]
body = helper.make_graph(body_nodes, "body", body_inputs, body_outputs)
nodes = [helper.make_node("Loop", ["trips", "condition", "x"], ["y", "z"], body=body)]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])]
outputs = [
    helper.make_tensor_value_info("y", TensorProto.FLOAT, [3]),
    helper.make_tensor_value_info("z", TensorProto.BOOL, [3]),
]
constants = [
    numpy_helper.from_array(np.array(3, np.int64), "trips"),
    numpy_helper.from_array(np.array(True), "condition"),
]
feeds = [np.ones(3, np.float32)]
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
try:
    run()
except Exception as error:
    print("BUG: the model is refused:", " ".join(str(error).split())[-400:])
    sys.exit(1)
print("the bug does not show")
