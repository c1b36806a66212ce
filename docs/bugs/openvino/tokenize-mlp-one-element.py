"""OpenVINO (CPU): two MatMul are refused with TokenizeMLPSeqSnippets

TokenizeMLPSeqSnippets throws for two products of matrices of which the second multiplies by a constant matrix of one element.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

nodes = [helper.make_node("MatMul", ["x", "c"], ["v"]), helper.make_node("MatMul", ["v", "d"], ["y"])]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 6])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 1])]
constants = [
    numpy_helper.from_array(np.ones((6, 1), np.float32), "c"),
    numpy_helper.from_array(np.ones((1, 1), np.float32), "d"),
]
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
    run([np.ones((4, 6), np.float32)])
except Exception as error:
    print("BUG: OpenVINO raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
print("the bug does not show")
