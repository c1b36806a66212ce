"""OpenVINO (CPU): a VariadicSplit of a constant of 4 bits an element ends the process

Folding a VariadicSplit of a constant of 4 bits an element takes each element for a byte, and reads and writes behind
the constants.

The model is made with OpenVINO's own operators, because ONNX has no Split of this type. Two elements of u4 are in a
byte.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows, or a signal ends the process. Exit code 0: it does not.
"""

import sys

import numpy as np
import openvino as ov
from openvino import op, opset8

data = np.arange(60000).astype(np.uint8)
constant = op.Constant(ov.Tensor(data, ov.Shape([400, 300]), ov.Type.u4))
split = opset8.variadic_split(constant, opset8.constant(np.int64(0)), opset8.constant(np.array([200, 100, 100])))
model = ov.Model([split.output(1)], [])

print("openvino", ov.__version__, "numpy", np.__version__)
print("DIES: compilation ends this process", flush=True)
request = ov.Core().compile_model(model, "CPU").create_infer_request()
request.infer()
found = request.get_output_tensor(0).data.ravel()[:4].tolist()
expected = data[30000:30004].tolist()
if found != expected:
    print("BUG: bytes", found, "instead of", expected)
    sys.exit(1)
print("the bug does not show")
