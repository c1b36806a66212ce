"""OpenVINO (CPU): wrong values of Div

Div of two constants of int8 or uint8 rounds to the nearest number, where ONNX rounds towards zero.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

nodes = [helper.make_node("Div", ["a", "b"], ["y"])]
inputs = []
outputs = [helper.make_tensor_value_info("y", TensorProto.UINT8, [4])]
constants = [
    numpy_helper.from_array(np.array([2, 3, 7, 255], np.uint8), "a"),
    numpy_helper.from_array(np.array([3, 2, 4, 2], np.uint8), "b"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=7)


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
found = run([])[0].tolist()
if found != [0, 1, 1, 127]:
    print("BUG:", found, "instead of", [0, 1, 1, 127])
    sys.exit(1)
print("the bug does not show")
