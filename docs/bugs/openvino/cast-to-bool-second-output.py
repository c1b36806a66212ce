"""OpenVINO (CPU): wrong values of Cast

For a Cast to bool, ConvertPrecision takes the first output of the node in front, whichever is cast. It raises an error
behind a Split into unequal parts and behind TopK.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

nodes = [
    helper.make_node("Split", ["x"], ["a", "b"]),
    helper.make_node("Cast", ["b"], ["y"], to=TensorProto.BOOL),
]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])]
outputs = [helper.make_tensor_value_info("y", TensorProto.BOOL, [2])]
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
found = run([np.array([0, 0, 1, 1], np.float32)])[0].tolist()
if found != [True, True]:
    print("BUG:", found, "instead of", [True, True])
    sys.exit(1)
print("the bug does not show")
