"""OpenVINO (CPU): LSTM without a batch ends the process

An LSTM or RNN of fixed shape whose batch has no elements ends the process by a division by zero, and a GRU is
refused.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
The process ends by a signal, behind a line with "DIES:", where the bug shows.
"""

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

nodes = [helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=4)]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 0, 1])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 1, 0, 4])]
constants = [
    numpy_helper.from_array(np.zeros((1, 16, 1), np.float32), "w"),
    numpy_helper.from_array(np.zeros((1, 16, 4), np.float32), "r"),
]
feeds = [np.zeros((3, 0, 1), np.float32)]
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
print("DIES: the compiler ends this process", flush=True)
run()
print("the bug does not show")
