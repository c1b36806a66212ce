"""OpenVINO (CPU): a DequantizeLinear of float8 is refused

Where another node of the model quantizes, the CPU plugin gives float8 to element-wise kernels, which do not take
it, so that a DequantizeLinear of float8 cannot be compiled.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import onnx
import onnx.parser
import openvino as ov

model = onnx.parser.parse_model("""
<ir_version: 9, opset_import: ["": 20]>
g (float8e5m2[2] x, float z) => (float[2] y, uint8 q)
<float two = {2}>
{
    y = DequantizeLinear (x, two)
    q = QuantizeLinear (z, two)
}
""")

print("openvino", ov.__version__, "onnx", onnx.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
try:
    core = ov.Core()
    core.compile_model(core.read_model(model.SerializeToString()), "CPU")
except Exception as error:
    print("BUG: OpenVINO raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
print("the bug does not show")
