"""OpenVINO (CPU): wrong values of Resize

The ONNX front end ignores `exclude_outside` of a cubic Resize, which gives no weight to what lies outside.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode="cubic", exclude_outside=1, cubic_coeff_a=-0.5),
]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 1, 4])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 1, 8])]
constants = [numpy_helper.from_array(np.array([1, 1, 1, 8]), "sizes")]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
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
x = np.array([8, 0, 0, 0], np.float32)
# The second element lies at 1.5 / 2 - 0.5 = 0.25. The weights for distances 1.25, 0.25, 0.75 and 1.75 are:
weights = np.array([-0.0703125, 0.8671875, 0.2265625, -0.0234375])
want = 8 * weights[1] / weights[1:].sum()  # the first is outside
found = float(run([x.reshape(1, 1, 1, 4)])[0].ravel()[1])
if abs(found - want) > 1e-3:
    print("BUG: the second element is", found, "instead of", want)
    sys.exit(1)
print("the bug does not show")
