"""OpenVINO (CPU): wrong values of Resize

Folding a linear Resize of constants over three axes takes values at wrong places, where the same Resize at run
time is right.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

nodes = [helper.make_node("Resize", ["x", "", "", "s"], ["y"], mode="linear", axes=[2, 3, 4])]
inputs, feeds = [], []
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 1, 2, 1])]
constants = [
    numpy_helper.from_array(np.array([0, 1, 5, 9], np.float32).reshape(1, 1, 1, 4, 1), "x"),
    numpy_helper.from_array(np.array([1, 2, 1], np.int64), "s"),
]
expected = np.array([0.5, 7.0]).reshape(1, 1, 1, 2, 1)
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
found = run()[0]
if found.shape != expected.shape or not np.allclose(found, expected, rtol=1e-4, atol=1e-4, equal_nan=True):
    print(f"BUG: {found.tolist()} instead of {expected.tolist()}")
    sys.exit(1)
print("the bug does not show")
