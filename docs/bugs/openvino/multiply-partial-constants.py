"""OpenVINO (CPU): an error on a valid model with MultiplyPartialTransformation

MultiplyPartialTransformation, of the low-precision transformations, throws for a product of two constants that have
been quantized.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnx.parser
import openvino as ov

model = onnx.parser.parse_model("""
<ir_version: 10, opset_import: ["": 21]>
g () => (float[2] y)
<float[2] c = {1, 2}, float[2] d = {3, 4}, float one = {1}>
{
    qc = QuantizeLinear (c, one)
    dc = DequantizeLinear (qc, one)
    qd = QuantizeLinear (d, one)
    dd = DequantizeLinear (qd, one)
    y = Mul (dc, dd)
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
try:
    run([])
except Exception as error:
    print("BUG: OpenVINO raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
print("the bug does not show")
