"""OpenVINO (CPU): SplitSqueezeConcatFusion ends the process

SplitSqueezeConcatFusion takes a negative axis of the Concat as it is, and writes in front of the order of the axes
that it makes.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
The process ends by a signal, behind a line with "DIES:", where the bug shows.
"""

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("Split", ["x"], ["a", "b"], axis=2),
    helper.make_node("Squeeze", ["a", "axes"], ["c"]),
    helper.make_node("Squeeze", ["b", "axes"], ["d"]),
    helper.make_node("Concat", ["c", "d"], ["y"], axis=-1),
]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 2, 2])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 4])]
constants = [numpy_helper.from_array(np.array([2], np.int64), "axes")]
feeds = [np.zeros((2, 2, 2), np.float32)]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


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
