"""OpenVINO (CPU): wrong result for Attention

The ONNX front end ignores left_window_size and right_window_size, which Attention has since operator set 25, so that
queries attend to keys outside of their window.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnx.parser
import openvino as ov

model = onnx.parser.parse_model("""
<ir_version: 10, opset_import: ["": 25]>
g (float[1, 1, 4, 1] q, float[1, 1, 4, 1] k, float[1, 1, 4, 1] v) => (float[1, 1, 4, 1] y)
{
    y = Attention <left_window_size = 0, right_window_size = 0> (q, k, v)
}
""")
onnx.checker.check_model(model, full_check=True)

core = ov.Core()
compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU")
zeros, values = np.zeros((1, 1, 4, 1), np.float32), np.arange(4, dtype=np.float32).reshape(1, 1, 4, 1)
got = compiled([zeros, zeros, values])[0]
print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
if not np.allclose(got, values):  # each query attends to the key of its own position
    print("BUG:", got.ravel().tolist(), "instead of", values.ravel().tolist())
    sys.exit(1)
print("the bug does not show")
