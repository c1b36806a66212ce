"""OpenVINO (CPU): infinity of float64 becomes finite

The CPU plugin computes float64 in float32, and clamps to finite numbers where it converts: infinity becomes 3.4e38.
This holds for Abs, Div, Log, IsInf, Cast to float32 and others; Identity and float32 are right.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnx.parser
import openvino as ov

model = onnx.parser.parse_model("""
<ir_version: 10, opset_import: ["": 20]>
g (double[3] x) => (double[3] y, float[3] z, bool[3] w)
{
    y = Abs (x)
    z = Cast <to = 1> (x)
    w = IsInf (x)
}
""")
feed = [np.array([np.inf, -np.inf, 1])]
expected = [[np.inf, np.inf, 1], [np.inf, -np.inf, 1], [True, True, False]]


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
found = [value.tolist() for value in run(feed)]
if found != expected:
    print(f"BUG: {found} instead of {expected}")
    sys.exit(1)
print("the bug does not show")
