"""OpenVINO (CPU): NonMaxSuppression cuts its limit to 32 bits

Where max_output_boxes_per_class of a NonMaxSuppression is an input, the CPU plugin keeps its lower 32 bits: 2**32
becomes 0, which selects no box, and 2**63 - 1, which stands for no limit, becomes -1, which raises an error. As a
constant it is clamped, and right.

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
g (float[1, 2, 4] boxes, float[1, 1, 2] scores, int64[1] most, float[1] overlap) => (int64[n, 3] y)
{
    y = NonMaxSuppression (boxes, scores, most, overlap)
}
""")
feed = [
    np.array([[[0, 0, 1, 1], [5, 5, 6, 6]]], np.float32),
    np.array([[[0.5, 0.25]]], np.float32),
    np.array([2**32]),
    np.array([0.5], np.float32),
]
expected = np.array([[0, 0, 0], [0, 0, 1]])  # two boxes that do not overlap


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
