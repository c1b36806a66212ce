"""OpenVINO (CPU): wrong values with SoftmaxFusion

SoftmaxFusion makes exp(x) / sum(exp(x)) a Softmax although the sum drops its axis, so that ONNX divides along another axis.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("Exp", ["x"], ["e"]),
    helper.make_node("ReduceSum", ["e", "axes"], ["sum"], keepdims=0),
    helper.make_node("Div", ["e", "sum"], ["y"]),
]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 3])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 3])]
constants = [numpy_helper.from_array(np.array([1]), "axes")]
x = np.arange(9, dtype=np.float32).reshape(3, 3) / 4
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
expected = np.exp(x) / np.exp(x).sum(axis=1)  # the sums are broadcast along the last axis
found = run([x])[0]
if found.shape != expected.shape or not np.allclose(found, expected, rtol=1e-4, atol=1e-5, equal_nan=True):
    print(f"BUG: {found.tolist()} instead of {expected.tolist()}")
    sys.exit(1)
print("the bug does not show")
