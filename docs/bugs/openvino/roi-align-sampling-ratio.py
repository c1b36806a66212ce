"""OpenVINO (CPU): RoiAlign without sampling_ratio samples each bin once

The default of sampling_ratio in ONNX is 0: as many samples as the bin has elements. The ONNX front end takes 1. The
region here is the whole image of 4 x 4 elements, of which one is 16, so that the mean of its 16 samples is 1.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnx.parser
import openvino as ov

model = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["": 16]>
g (float[1, 1, 4, 4] x, float[1, 4] rois, int64[1] images) => (float[1, 1, 1, 1] y)
{
    y = RoiAlign (x, rois, images)
}
""")
image = np.zeros((1, 1, 4, 4), np.float32)
image[0, 0, 0, 0] = 16
feed = [image, np.array([[0, 0, 4, 4]], np.float32), np.array([0])]
expected = np.array([[[[1]]]], np.float32)


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
