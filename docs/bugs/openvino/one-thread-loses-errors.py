"""OpenVINO (CPU): an inference that fails returns without error

With INFERENCE_NUM_THREADS=1 a model of dynamic shapes loses the exceptions of its nodes, so that an inference that fails
returns without error and leaves its results unwritten.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

nodes = [helper.make_node("MatMul", ["a", "b"], ["y"]), helper.make_node("Relu", ["x"], ["z"])]
inputs = [
    helper.make_tensor_value_info("a", TensorProto.FLOAT, ["N", "K"]),
    helper.make_tensor_value_info("b", TensorProto.FLOAT, ["L", "M"]),
    helper.make_tensor_value_info("x", TensorProto.FLOAT, [3]),
]
outputs = [
    helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", "M"]),
    helper.make_tensor_value_info("z", TensorProto.FLOAT, [3]),
]
graph = helper.make_graph(nodes, "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def says(properties):
    """Multiply matrices that do not fit; return what the error says, or the shape of the product."""
    core = ov.Core()
    compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", properties)
    request = compiled.create_infer_request()
    for place, shape in enumerate([(2, 3), (4, 2), (3,)]):
        request.set_input_tensor(place, ov.Tensor(np.ones(shape, np.float32)))
    try:
        request.infer()
    except RuntimeError as error:
        return "raises " + str(error).strip().split("\n")[-1]
    return f"returns a product of shape {tuple(request.get_output_tensor(0).shape)}"


print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
default, one_thread = says({}), says({"INFERENCE_NUM_THREADS": 1})
print("a product of matrices of 2 x 3 and 4 x 2", default)
if default.startswith("raises") and one_thread.startswith("returns"):
    print("BUG: with INFERENCE_NUM_THREADS=1 it", one_thread)
    sys.exit(1)
print("the bug does not show")
