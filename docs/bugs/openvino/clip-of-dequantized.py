"""OpenVINO (CPU): wrong values with ClampTransformation

ClampTransformation, of the low-precision transformations, makes a Clip of dequantized data one of integers, whose
bounds are truncated.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnx.parser
import openvino as ov

model = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["": 14]>
g (float[3] x) => (float[3] y)
<float one = {1}, int8 zero = {0}, float low = {-0.5}, float high = {1.5}>
{
    q = QuantizeLinear (x, one, zero)
    d = DequantizeLinear (q, one, zero)
    y = Clip (d, low, high)
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
found = run([np.array([-3, 1, 3], np.float32)])[0]
expected = np.array([-0.5, 1, 1.5])
if found.shape != expected.shape or not np.allclose(found, expected):
    print(f"BUG: {found.tolist()} instead of {expected.tolist()}")
    sys.exit(1)
print("the bug does not show")
