"""OpenVINO (CPU): a QLinearMatMul is refused

The CPU plugin cannot compile a QLinearMatMul of data with a zero point by several constant matrices of one column,
because it takes the number to subtract for each matrix for one of each column.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnx.parser
import openvino as ov

model = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["": 18]>
g (int8[1, 1] x) => (int8[1, 2, 1, 1] y)
<float one = {1}, int8 point = {1}, int8 zero = {0}, int8[1, 2, 1, 1] w = {0, 1}>
{
    y = QLinearMatMul (x, one, point, w, one, zero, one, zero)
}
""")


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
    return [np.array(request.get_output_tensor(place).data) for place in range(len(model.graph.output))]


print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
try:
    run([np.ones((1, 1), np.int8)])
except Exception as error:
    print("BUG: OpenVINO raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
print("the bug does not show")
