"""OpenVINO (CPU): a tensor without elements becomes one of other size with TransposeToReshape

TransposeToReshape makes a Reshape that copies sizes of zero, so that a tensor without elements becomes one of
another size, which nobody writes.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnx.parser
import openvino as ov

model = onnx.parser.parse_model("""
<ir_version: 9, opset_import: ["": 19]>
g (float[1, 0, 2] x) => (float[0, 2, 1] y)
{
    y = Transpose <perm = [1, 2, 0]> (x)
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
x = np.zeros((1, 0, 2), np.float32)
found = run([x])[0]
expected = x.transpose(1, 2, 0)
if found.shape != expected.shape:
    print(f"BUG: {found.tolist()} instead of {expected.tolist()}")
    sys.exit(1)
print("the bug does not show")
