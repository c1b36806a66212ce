"""OpenVINO (CPU): ReduceMax of infinities is finite

ReduceMax starts from the lowest finite float32 and ReduceMin from the highest, so that the maximum of minus
infinities is -3.4e38, where ONNX has minus infinity. So it is for no elements at all, of which ONNX says since opset
20: "Reduction over an empty set of values yields minus infinity (if supported by the datatype) or the minimum value
of the data type otherwise."

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
g (float[2, 3] x) => (float[2, 1] y, float[2, 1] z)
{
    axes = Constant <value = int64[1] {1}> ()
    y = ReduceMax (x, axes)
    n = Neg (x)
    z = ReduceMin (n, axes)
}
""")
feed = [np.array([[-np.inf] * 3, [-np.inf, 1, -np.inf]], np.float32)]
expected = [[[-np.inf], [1]], [[np.inf], [-1]]]


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
