"""OpenVINO (CPU): the process dies

Div (Divide) of constants, the lowest int32 or int64 by -1, is folded, which overflows and ends the
process. Fed operands have a result.

Seen with openvino 2026.4.1.

This script dies when the bug shows (of signal 8). Exit code 0: it does not show.
"""

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

nodes = [helper.make_node("Div", ["a", "b"], ["y"])]
outputs = [helper.make_tensor_value_info("y", TensorProto.INT64, [1])]
constants = [numpy_helper.from_array(np.array([-(2**63)]), "a"), numpy_helper.from_array(np.array([-1]), "b")]
graph = helper.make_graph(nodes, "g", [], outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)

print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
print("DIES: folding Div kills this process", flush=True)
core = ov.Core()
core.compile_model(core.read_model(model.SerializeToString()), "CPU")
print("the bug does not show")
