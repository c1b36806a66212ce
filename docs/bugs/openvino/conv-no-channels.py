"""OpenVINO (CPU): Conv without channels does not write its result

A Conv of data and weights without channels is a sum of nothing, so its result is 0, or the bias. Without a bias
OpenVINO leaves the result unwritten: it holds what the memory held before. The script starts itself again with
MALLOC_PERTURB_, so that the C library fills fresh memory with the byte 0xAA.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import os
import sys

import numpy as np
import onnx
import onnx.parser
import openvino as ov

model = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["": 11]>
g (float[1, 0, 6, 6] x, float[4, 0, 3, 2] w) => (float[1, 4, 4, 5] y)
{
    y = Conv (x, w)
}
""")
feed = [np.zeros((1, 0, 6, 6), np.float32), np.zeros((4, 0, 3, 2), np.float32)]
expected = np.zeros((1, 4, 4, 5), np.float32)


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
if os.environ.get("MALLOC_PERTURB_") != "85":
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "MALLOC_PERTURB_": "85"})
found = run(feed)[0]
if found.shape != expected.shape or not np.array_equal(found, expected):
    print(f"BUG: {found.ravel()[:4].tolist()} of shape {found.shape} instead of zeros of shape {expected.shape}")
    sys.exit(1)
print("the bug does not show")
