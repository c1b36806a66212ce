"""OpenVINO (CPU): a Loop of constants is refused

Constant folding throws for a Loop of constants with a trip count of zero.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

body = helper.make_graph(
    [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Neg", ["a"], ["b"])],
    "body",
    [
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
        helper.make_tensor_value_info("go", TensorProto.BOOL, []),
        helper.make_tensor_value_info("a", TensorProto.FLOAT, [2]),
    ],
    [
        helper.make_tensor_value_info("on", TensorProto.BOOL, []),
        helper.make_tensor_value_info("b", TensorProto.FLOAT, [2]),
    ],
)
nodes = [helper.make_node("Loop", ["trips", "", "x"], ["y"], body=body)]
inputs = []
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])]
constants = [numpy_helper.from_array(np.array(0), "trips"), numpy_helper.from_array(np.ones(2, np.float32), "x")]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)


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
    run([])
except Exception as error:
    print("BUG: OpenVINO raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
print("the bug does not show")
