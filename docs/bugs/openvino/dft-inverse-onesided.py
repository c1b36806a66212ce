"""OpenVINO (CPU): wrong shape of a result of DFT

An inverse DFT with onesided=1 gives real numbers, which ONNX puts along a last axis of size 1. The ONNX front end
makes an IRDFT of it, whose result has no such axis.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnx.parser
import openvino as ov

model = onnx.parser.parse_model("""
<ir_version: 9, opset_import: ["": 20]>
g (float[1, 3, 2] x) => (float[1, 4, 1] y)
<int64 axis = {1}>
{
    y = DFT <inverse = 1, onesided = 1> (x, , axis)
}
""")
onnx.checker.check_model(model, full_check=True)

core = ov.Core()
compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU")
print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__, flush=True)
got = compiled([np.arange(6, dtype=np.float32).reshape(1, 3, 2)])[0]
if got.shape != (1, 4, 1):
    print("BUG: the result has shape", got.shape, "instead of", (1, 4, 1))
    sys.exit(1)
print("the bug does not show")
