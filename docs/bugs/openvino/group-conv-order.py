"""OpenVINO (CPU): wrong values with ConvolutionToGroupConvolutionFusion

ConvolutionToGroupConvolutionFusion does not check that a Concat joins the convolutions in the order of the parts of
the Split that they read.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnx.parser
import openvino as ov

model = onnx.parser.parse_model("""
<ir_version: 10, opset_import: ["": 22]>
g (float[1, 2, 1] x) => (float[1, 2, 1] y)
<float[1, 1, 1] v = {1}, float[1, 1, 1] w = {10}>
{
    a, b = Split <axis = 1, num_outputs = 2> (x)
    c = Conv (a, v)
    d = Conv (b, w)
    y = Concat <axis = 1> (d, c)
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
found = run([np.array([[[1], [2]]], np.float32)])[0]
expected = np.array([[[10 * 2], [1 * 1]]])
if found.shape != expected.shape or not np.allclose(found, expected):
    print(f"BUG: {found.tolist()} instead of {expected.tolist()}")
    sys.exit(1)
print("the bug does not show")
