"""OpenVINO (CPU): GatherElements writes behind its result

The kernel of GatherElements takes an element of f4e2m1 for a whole byte, and writes behind its result.

The model is made with OpenVINO's own operators, because ONNX has no GatherElements of this type. Two elements of f4e2m1 are
in a byte.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import openvino as ov
from openvino import opset8

data = opset8.parameter([2, 4], ov.Type.f4e2m1)
indices = opset8.parameter([8, 4], np.int32)
model = ov.Model([opset8.gather_elements(data, indices, 0)], [data, indices])

print("openvino", ov.__version__, "numpy", np.__version__)
request = ov.Core().compile_model(model, "CPU").create_infer_request()
memory = np.full(256, 0xEE, np.uint8)  # the result needs 16 bytes
request.set_input_tensor(0, ov.Tensor(np.full(256, 0x22, np.uint8), ov.Shape([2, 4]), ov.Type.f4e2m1))
request.set_input_tensor(1, ov.Tensor(np.zeros((8, 4), np.int32)))
request.set_output_tensor(0, ov.Tensor(memory, ov.Shape([8, 4]), ov.Type.f4e2m1))
request.infer()
behind = memory[16:]
if (behind != 0xEE).any():
    print("BUG:", np.count_nonzero(behind != 0xEE), "bytes behind the result were written; bytes 12 to 35 are now")
    print(memory[12:36].tolist())
    sys.exit(1)
print("the bug does not show")
