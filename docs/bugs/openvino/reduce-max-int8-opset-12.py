"""OpenVINO (CPU): ReduceMax of int8 is refused in opset 12

The ONNX front end refuses ReduceMax and ReduceMin of int8 and uint8 in opset 12, which has these types, and takes
them from opset 13 on.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnx.parser
import openvino as ov

model = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["": 12]>
g (int8[3] x) => (int8[1] y)
{
    y = ReduceMax (x)
}
""")
feed = [np.array([1, 3, 2], np.int8)]
expected = np.array([3], np.int8)


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
