"""OpenVINO (CPU): ConvTranspose without channels is refused

A ConvTranspose of data and weights without input channels is a sum of nothing, so its result is 0. The CPU plugin
cannot compile it, because oneDNN has no deconvolution of that kind; it takes a Conv of such data.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnx.parser
import openvino as ov

model = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["": 11]>
g (float[1, 0, 3, 3] x, float[0, 2, 1, 1] w) => (float[1, 2, 3, 3] y)
{
    y = ConvTranspose (x, w)
}
""")
feed = [np.zeros((1, 0, 3, 3), np.float32), np.zeros((0, 2, 1, 1), np.float32)]
expected = np.zeros((1, 2, 3, 3), np.float32)


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
