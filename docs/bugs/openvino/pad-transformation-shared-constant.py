"""OpenVINO (CPU): a Pad is refused with PadTransformation

PadTransformation, of the low-precision transformations, pads the constant of a Mul in front of a Pad although other nodes use that constant.

The transformations run because the model has a QuantizeLinear.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("QuantizeLinear", ["x", "one"], ["q"]),
    helper.make_node("Mul", ["c", "x"], ["v"]),
    helper.make_node("Pad", ["v", "pads"], ["y"]),
    helper.make_node("Max", ["x", "c"], ["z"]),
]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 3])]
outputs = [
    helper.make_tensor_value_info("q", TensorProto.UINT8, [1, 1, 3]),
    helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 4]),
    helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 1, 3]),
]
constants = [
    numpy_helper.from_array(np.array(1, np.float32), "one"),
    numpy_helper.from_array(np.array([[[5, 6, 7]]], np.float32), "c"),
    numpy_helper.from_array(np.array([0, 0, 0, 0, 0, 1]), "pads"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


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
    run([np.array([[[1, 2, 3]]], np.float32)])
except Exception as error:
    print("BUG: OpenVINO raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
print("the bug does not show")
