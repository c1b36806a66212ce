"""OpenVINO (CPU): wrong values of Pad

The CPU plugin pads with 0 where the pads are constants and the value to pad with is an input.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

nodes = [helper.make_node("Pad", ["x", "pads", "value"], ["y"])]
inputs = [
    helper.make_tensor_value_info("x", TensorProto.FLOAT, [1]),
    helper.make_tensor_value_info("value", TensorProto.FLOAT, []),
]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])]
constants = [numpy_helper.from_array(np.array([1, 1]), "pads")]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)


def run(feed):
    """Compile with the default passes, with float32 as it is; return the outputs."""
    core = ov.Core()
    compiled = core.compile_model(
        core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
    )
    request = compiled.create_infer_request()
    for place, value in enumerate(feed):
        request.set_input_tensor(place, ov.Tensor(np.asarray(value, order="C")))
    request.infer()
    return [np.array(request.get_output_tensor(place).data) for place in range(len(outputs))]


print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
found = run([np.array([2], np.float32), np.array(1, np.float32)])[0]
if found.tolist() != [1, 2, 1]:
    print("BUG:", found.tolist(), "instead of", [1, 2, 1])
    sys.exit(1)
print("the bug does not show")
