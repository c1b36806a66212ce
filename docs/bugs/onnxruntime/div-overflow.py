"""ONNX Runtime (CPU): the process dies

Div of the lowest int32 or int64 by -1 overflows, which ends the process. Div by zero is an error that says so.

Seen with onnxruntime 1.32.0.

This script dies when the bug shows (of signal 8). Exit code 0: it does not show.
"""

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

nodes = [helper.make_node("Div", ["a", "b"], ["y"])]
inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, [1]) for name in ("a", "b")]
outputs = [helper.make_tensor_value_info("y", TensorProto.INT64, [1])]
graph = helper.make_graph(nodes, "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
feed = {"a": np.array([-(2**63)]), "b": np.array([-1])}

print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
print("DIES: the division kills this process", flush=True)
session.run(None, feed)
print("the bug does not show")
