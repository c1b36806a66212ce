"""OpenVINO (CPU): ExtractPairsAfterMatmul breaks the compilation

ExtractPairsAfterMatmul makes nodes that have no place in the order of the nodes yet, and TokenizeSnippets, which
needs one, throws ("Topological order is required, but not set").

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("MatMul", ["x1", "c3"], ["v0"]),
    helper.make_node("Reshape", ["v0", "c0"], ["v1"]),
    helper.make_node("Add", ["v1", "c2"], ["v2"]),
    helper.make_node("Exp", ["x0"], ["v3"]),
    helper.make_node("Neg", ["v3"], ["v4"]),
    helper.make_node("Add", ["v2", "v4"], ["v5"]),
    helper.make_node("Reshape", ["v5", "c1"], ["v6"]),
]
inputs = [
    helper.make_tensor_value_info("x0", TensorProto.FLOAT, [2, 1]),
    helper.make_tensor_value_info("x1", TensorProto.FLOAT, [2, 1]),
]
outputs = [helper.make_tensor_value_info("v6", TensorProto.FLOAT, [1, 1, 2, 2])]
constants = [
    numpy_helper.from_array(np.array([1, 1, 1, 2, 2], np.int64), "c0"),
    numpy_helper.from_array(np.array([1, 1, 2, 2], np.int64), "c1"),
    numpy_helper.from_array(np.array([1, 1], np.float32), "c2"),
    numpy_helper.from_array(np.array([[[[2, 3]]]], np.float32), "c3"),
]
feeds = [np.ones((2, 1), np.float32), np.ones((2, 1), np.float32)]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=9)


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
