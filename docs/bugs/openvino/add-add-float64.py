"""OpenVINO (CPU): the compilation does not end with AddAddFusion

AddAddFusion does not end for a sum of constants of float64, because Add cannot fold them and the pass matches its own result again.

Seen with openvino 2026.4.1.

This script dies when the bug shows (of signal 14). Exit code 0: it does not show.
"""

import signal

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

nodes = [helper.make_node("Add", ["a", "a"], ["v"]), helper.make_node("Add", ["b", "v"], ["y"])]
inputs = []
outputs = [helper.make_tensor_value_info("y", TensorProto.DOUBLE, [7])]
constants = [numpy_helper.from_array(np.ones(7), "a"), numpy_helper.from_array(np.ones(7), "b")]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)


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
signal.alarm(30)  # seconds; this signal ends the process even inside the compiler
print("DIES: the compilation does not end; the alarm kills this process", flush=True)
run([])
print("the bug does not show")
