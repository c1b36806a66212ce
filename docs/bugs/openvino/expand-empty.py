"""OpenVINO (CPU): the process dies in Expand

The CPU plugin divides by zero at compilation for an Expand of a tensor of fixed shape without elements to a constant shape, which Einsum can contain as well.

Seen with openvino 2026.4.1.

This script dies when the bug shows (of signal 8). Exit code 0: it does not show.
"""

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

nodes = [helper.make_node("Expand", ["x", "shape"], ["y"])]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [0, 4])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 0, 4])]
constants = [numpy_helper.from_array(np.array([3, 0, 4]), "shape")]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


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
print("DIES: compiling the model kills this process", flush=True)
run([np.zeros((0, 4), np.float32)])
print("the bug does not show")
