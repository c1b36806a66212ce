"""OpenVINO (CPU): the process dies in Clip

The ONNX front end dies at a Clip that lacks a bound and whose input has no element type yet. The result of
ConcatFromSequence has none, and neither has that of any node in front that cannot be converted.

Seen with openvino 2026.4.1.

This script dies when the bug shows (of signal 11). Exit code 0: it does not show.
"""

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

nodes = [
    helper.make_node("SequenceConstruct", ["x"], ["s"]),
    helper.make_node("ConcatFromSequence", ["s"], ["v"], axis=0),
    helper.make_node("Clip", ["v"], ["y"]),
]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])]
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
print("DIES: reading the model kills this process", flush=True)
run([np.zeros(3, np.float32)])
print("the bug does not show")
