"""OpenVINO (CPU): a Sum, Max, Min or Mean without operands ends the process

The ONNX front end dies of a segmentation fault at a Sum, Max, Min or Mean without operands, which is not valid.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows, or a signal ends the process. Exit code 0: it does not.
"""

import sys

import onnx
import openvino as ov
from onnx import TensorProto, helper

outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])]
graph = helper.make_graph([helper.make_node("Sum", [], ["y"])], "g", [], outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)

print("openvino", ov.__version__, "onnx", onnx.__version__)
print("DIES: reading the model ends this process", flush=True)
try:
    ov.Core().read_model(model.SerializeToString())
except RuntimeError:
    print("the bug does not show: the model is refused")
    sys.exit(0)
print("BUG: the model is accepted")
sys.exit(1)
