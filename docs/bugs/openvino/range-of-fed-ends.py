"""OpenVINO (CPU): an output has the wrong shape

Range of ends that are inputs counts its elements without the sign: from 0 to 4 by -1 there are none, by ONNX's page
max(ceil((limit - start) / delta), 0), and the CPU plugin gives 0, -1, -2, -3. With constant ends the result is right.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

names = ["start", "limit", "delta"]
inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, []) for name in names]
outputs = [helper.make_tensor_value_info("y", TensorProto.INT64, [None])]
graph = helper.make_graph([helper.make_node("Range", names, ["y"])], "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
onnx.checker.check_model(model, full_check=True)

core = ov.Core()
compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU")
got = compiled([np.array(value, np.int64) for value in (0, 4, -1)])[0]
print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
if got.size:
    print("BUG:", got.tolist(), "instead of", np.arange(0, 4, -1).tolist())
    sys.exit(1)
print("the bug does not show")
