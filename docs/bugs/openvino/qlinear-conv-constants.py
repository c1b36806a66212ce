"""OpenVINO (CPU): wrong result for QLinearConv

The zero point of a constant input of a QLinearConv is subtracted in uint8 when the convolution is folded, so that
elements below the zero point wrap around: 25 - 132 counts as 149.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnx.parser
import openvino as ov

model = onnx.parser.parse_model("""
<ir_version: 9, opset_import: ["": 10]>
g () => (uint8[1, 1, 1, 2] y)
<uint8[1, 1, 1, 2] x = {25, 174}, float scale = {0.01}, uint8 zero = {132}, uint8[1, 1, 1, 1] w = {3}, uint8 one = {1}, uint8 center = {123}>
{
    y = QLinearConv (x, scale, zero, w, scale, one, scale, center)
}
""")
onnx.checker.check_model(model, full_check=True)

core = ov.Core()
compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU")
print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__, flush=True)
got = compiled([])[0].ravel().tolist()
if got != [121, 124]:  # (25 - 132) * (3 - 1) * 0.01 + 123 and (174 - 132) * (3 - 1) * 0.01 + 123
    print("BUG:", got, "instead of", [121, 124])
    sys.exit(1)
print("the bug does not show")
