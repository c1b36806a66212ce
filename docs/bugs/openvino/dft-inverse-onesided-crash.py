"""OpenVINO (CPU): the process dies in DFT

An inverse DFT with onesided=1 along the third axis of four ends the process with a segmentation fault at the run. Along
the second axis of three it works, apart from the shape of its result.

Seen with openvino 2026.4.1.

This script dies when the bug shows (of signal 11). Exit code 0: it does not show.
"""

import numpy as np
import onnx
import onnx.parser
import openvino as ov

model = onnx.parser.parse_model("""
<ir_version: 9, opset_import: ["": 20]>
g (float[1, 1, 3, 2] x) => (float[1, 1, 4, 1] y)
<int64 axis = {2}>
{
    y = DFT <inverse = 1, onesided = 1> (x, , axis)
}
""")
onnx.checker.check_model(model, full_check=True)

core = ov.Core()
compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU")
print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__, flush=True)
print("DIES: running the model kills this process", flush=True)
compiled([np.arange(6, dtype=np.float32).reshape(1, 1, 3, 2)])
print("the bug does not show")
