"""OpenVINO (CPU): wrong values of HardSigmoid and Selu

The ONNX front end takes the default for an attribute of HardSigmoid or Selu that is 0.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

nodes = [
    helper.make_node("HardSigmoid", ["x"], ["y"], alpha=1.0, beta=0.0),
    helper.make_node("Selu", ["x"], ["z"], alpha=0.0, gamma=1.0),
]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])]
outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in ("y", "z")]
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
x = np.array([-0.5, 0.25, 3], np.float32)
expected = [np.clip(x, 0, 1), np.maximum(x, 0)]  # max(0, min(1, 1 * x + 0)), and 1 * x or 0 * (exp(x) - 1)
for name, found, want in zip(("HardSigmoid", "Selu"), run([x]), expected, strict=True):
    if not np.allclose(found, want):
        print(f"BUG: {name} gives {found.tolist()} instead of {want.tolist()}")
        sys.exit(1)
print("the bug does not show")
