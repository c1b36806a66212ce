"""OpenVINO (CPU): MergeUnrolledSDPA throws

MergeUnrolledSDPA joins the constants that the heads multiply by without a look at their sizes, and throws where
one is broadcast.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("MatMul", ["x", "k"], ["a0"]),
    helper.make_node("Add", ["a0", "m"], ["b0"]),
    helper.make_node("Softmax", ["b0"], ["c0"]),
    helper.make_node("MatMul", ["c0", "x"], ["d0"]),
    helper.make_node("MatMul", ["d0", "p"], ["e0"]),
    helper.make_node("MatMul", ["x", "k"], ["a1"]),
    helper.make_node("Add", ["a1", "m"], ["b1"]),
    helper.make_node("Softmax", ["b1"], ["c1"]),
    helper.make_node("MatMul", ["c1", "x"], ["d1"]),
    helper.make_node("MatMul", ["d1", "k"], ["e1"]),
    helper.make_node("Add", ["e0", "e1"], ["y"]),
]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 1])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 2])]
constants = [
    numpy_helper.from_array(np.array([[1, 2]], np.float32), "k"),
    numpy_helper.from_array(np.array([[3]], np.float32), "p"),
    numpy_helper.from_array(np.array(1, np.float32), "m"),
]
feeds = [np.array([[1], [2]], np.float32)]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=9)


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
