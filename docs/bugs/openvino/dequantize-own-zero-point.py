"""OpenVINO (CPU): a DequantizeLinear is refused

The low-precision transformations refuse a DequantizeLinear of a constant that is its zero point as well.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("DequantizeLinear", ["c", "one", "c"], ["v0"]),
    helper.make_node("Add", ["v0", "x"], ["v1"]),
    helper.make_node("QuantizeLinear", ["v1", "one"], ["y"]),
]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])]
outputs = [helper.make_tensor_value_info("y", TensorProto.UINT8, [2])]
constants = [
    numpy_helper.from_array(np.array(3, np.uint8), "c"),
    numpy_helper.from_array(np.array(1, np.float32), "one"),
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
    run([np.ones(2, np.float32)])
except Exception as error:
    print("BUG: OpenVINO raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
print("the bug does not show")
