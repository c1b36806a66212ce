"""OpenVINO (CPU): AffineGrid of float16 is refused

The ONNX front end makes the grid of an AffineGrid in float32 and multiplies it by theta as it is, so that it refuses
float16, bfloat16 and float64, which ONNX has since opset 20.

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
g (float16[1, 2, 3] theta) => (float16[1, 2, 2, 2] y)
{
    size = Constant <value = int64[4] {1, 1, 2, 2}> ()
    y = AffineGrid <align_corners = 1> (theta, size)
}
""")
feed = [np.array([[[1, 0, 0], [0, 1, 0]]], np.float16)]  # the identity
expected = np.array([[[[-1, -1], [1, -1]], [[-1, 1], [1, 1]]]], np.float16)


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
    found = run(feed)[0]
except Exception as error:
    print("BUG: OpenVINO raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
if not np.allclose(found, expected, rtol=1e-3):
    print(f"another bug: {found.tolist()} instead of {expected.tolist()}")
    sys.exit(2)
print("the bug does not show")
