"""OpenVINO (CPU): a tensor without elements gets one with ReshapeOptimizations

ReshapeOptimizations writes a size of 0 into the constant shape of a Reshape that copies sizes of zero, so that the
Reshape copies another size: Softmax of opset 1, which reshapes to two axes and back, makes [0] to [1], and nobody
writes that element. Conv with a bias and InstanceNormalization without channels do not compile for the same reason.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnx.parser
import openvino as ov

model = onnx.parser.parse_model("""
<ir_version: 3, opset_import: ["": 1]>
g (float[0] x) => (float[0] y)
{
    y = Softmax <axis = 0> (x)
}
""")
feed = [np.zeros(0, np.float32)]
expected = np.zeros(0, np.float32)


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
if found.shape != expected.shape or not np.array_equal(found, expected):
    print(f"BUG: {found.ravel()[:4].tolist()} of shape {found.shape} instead of zeros of shape {expected.shape}")
    sys.exit(1)
print("the bug does not show")
