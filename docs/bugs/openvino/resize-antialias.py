"""OpenVINO (CPU): Resize ignores antialias

With antialias=1 ONNX stretches the filter of a linear or cubic Resize that makes smaller: halving, each result takes
part of four elements, with the weights 1/8, 3/8, 3/8 and 1/8. OpenVINO ignores it, and takes two elements.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnx.parser
import openvino as ov

model = onnx.parser.parse_model("""
<ir_version: 10, opset_import: ["": 19]>
g (float[1, 1, 1, 8] x) => (float[1, 1, 1, 4] y)
{
    scales = Constant <value = float[4] {1.0, 1.0, 1.0, 0.5}> ()
    y = Resize <mode = "linear", antialias = 1> (x, , scales)
}
""")
feed = [np.array([[[[0, 0, 0, 8, 0, 0, 0, 0]]]], np.float32)]
expected = np.array([[[[0, 3, 1, 0]]]], np.float32)


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
found = run(feed)[0]
if found.shape != expected.shape or not np.allclose(found, expected, rtol=1e-3):
    print(f"BUG: {found.tolist()} instead of {expected.tolist()}")
    sys.exit(1)
print("the bug does not show")
