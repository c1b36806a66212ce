"""OpenVINO (CPU): NonMaxSuppression of constants cannot be compiled

The plugin computes constant parts of the graph when it compiles, into memory of a fixed size. The number of rows of
NonMaxSuppression depends on its data, so the compilation fails. With boxes or scores as an input it succeeds.

Seen with openvino 2026.4.1.

Exit code 1 when the bug shows, 0 when it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

boxes = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 10, 1, 11]]], np.float32)
scores = np.array([[[0.9, 0.75, 0.6]]], np.float32)
constants = [
    numpy_helper.from_array(boxes, "boxes"),
    numpy_helper.from_array(scores, "scores"),
    numpy_helper.from_array(np.array([3]), "limit"),
    numpy_helper.from_array(np.array([0.5], np.float32), "overlap"),
]
node = helper.make_node("NonMaxSuppression", ["boxes", "scores", "limit", "overlap"], ["y"])
outputs = [helper.make_tensor_value_info("y", TensorProto.INT64, [None, 3])]
graph = helper.make_graph([node], "g", [], outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)

print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model; the boxes 0 and 2 are selected")
core = ov.Core()
try:
    compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU")
except RuntimeError as error:
    print("BUG:", str(error).strip().splitlines()[-1])
    sys.exit(1)
found = compiled([])[0]
print("OpenVINO:", found.tolist())
sys.exit(int(found.tolist() != [[0, 0, 0], [0, 0, 2]]))
