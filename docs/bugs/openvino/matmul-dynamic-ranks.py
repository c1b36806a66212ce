"""OpenVINO (CPU): a MatMul of a size that is known at run time only is refused

The CPU plugin cannot compile a MatMul of a matrix, of which a size is known at run time only, by a constant of
three axes.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, "n", 5])]
constants = [numpy_helper.from_array(np.ones((3, 8, 5), np.float32), "w")]
feeds = [np.ones((1, 8), np.float32)]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


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
