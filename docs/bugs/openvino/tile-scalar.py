"""OpenVINO (CPU): the process dies in Tile

Tile ends the process for a scalar, whose repeats are an input without elements.

Seen with openvino 2026.4.1.

This script dies when the bug shows (of signal 11). Exit code 0: it does not show.
"""

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

nodes = [helper.make_node("Tile", ["x", "repeats"], ["y"])]
inputs = [
    helper.make_tensor_value_info("x", TensorProto.FLOAT, []),
    helper.make_tensor_value_info("repeats", TensorProto.INT64, [0]),
]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])]
constants = []
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
print("DIES: compiling and running the model kills this process", flush=True)
run([np.array(3, np.float32), np.zeros(0, np.int64)])
print("the bug does not show")
