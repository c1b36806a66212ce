"""OpenVINO (CPU): an error on a valid model with SwishFusionWithBeta

SwishFusionWithBeta throws where the constant beta of x / (1 + exp(-beta * x)) is a vector of one element.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnx.parser
import openvino as ov

model = onnx.parser.parse_model("""
<ir_version: 9, opset_import: ["": 19]>
g (float[2] x) => (float[2] y)
<float one = {1}, float[1] beta = {2}>
{
    m = Mul (x, beta)
    n = Neg (m)
    e = Exp (n)
    s = Add (e, one)
    y = Div (x, s)
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
    run([np.ones(2, np.float32)])
except Exception as error:
    print("BUG: OpenVINO raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
print("the bug does not show")
