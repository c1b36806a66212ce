"""OpenVINO (CPU): a ConstantOfShape of 4 bits an element ends the process

Folding a ConstantOfShape of a type of 4 bits writes a byte for each element, and so behind the result.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows, or a signal ends the process. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

nodes = [helper.make_node("ConstantOfShape", ["s"], ["y"], value=helper.make_tensor("", TensorProto.UINT4, [1], [2]))]
outputs = [helper.make_tensor_value_info("y", TensorProto.UINT4, [64, 1000])]
graph = helper.make_graph(nodes, "g", [], outputs, [numpy_helper.from_array(np.array([64, 1000]), "s")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)

print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
print("DIES: compilation ends this process", flush=True)
request = ov.Core().compile_model(ov.Core().read_model(model.SerializeToString()), "CPU").create_infer_request()
request.infer()
found = np.unique(request.get_output_tensor(0).data)
if found.tolist() != [0x22]:
    print("BUG: bytes", found.tolist(), "instead of", [0x22])
    sys.exit(1)
print("the bug does not show")
