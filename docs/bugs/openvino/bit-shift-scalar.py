"""OpenVINO (CPU): an output of BitShift has the wrong shape

The ONNX front end gives the result of a BitShift of two scalars one axis.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

nodes = [helper.make_node("BitShift", ["x", "n"], ["y"], direction="LEFT")]
inputs = [
    helper.make_tensor_value_info("x", TensorProto.UINT16, []),
    helper.make_tensor_value_info("n", TensorProto.UINT16, []),
]
outputs = [helper.make_tensor_value_info("y", TensorProto.UINT16, [])]
graph = helper.make_graph(nodes, "g", inputs, outputs)
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
found = run([np.array(11, np.uint16), np.array(1, np.uint16)])[0]
if found.shape != ():
    print("BUG: shape", found.shape, "instead of", ())
    sys.exit(1)
print("the bug does not show")
