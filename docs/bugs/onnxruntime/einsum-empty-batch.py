"""ONNX Runtime (CPU): Einsum ends the process

The kernel of Einsum divides by zero where two operands are multiplied over axes of which a batch axis has no elements.

Seen with onnxruntime 1.32.0.

This script dies when the bug shows (of signal 8). Exit code 0: it does not show.
"""

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

graph = helper.make_graph(
    [helper.make_node("Einsum", ["a", "b"], ["y"], equation="bhqk,bkhd->bqhd")],
    "g",
    [
        helper.make_tensor_value_info("a", TensorProto.FLOAT, [0, 2, 3, 4]),
        helper.make_tensor_value_info("b", TensorProto.FLOAT, [0, 4, 2, 5]),
    ],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [0, 3, 2, 5])],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
onnx.checker.check_model(model, full_check=True)
a, b = np.zeros((0, 2, 3, 4), np.float32), np.zeros((0, 4, 2, 5), np.float32)
print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
print("numpy's result has the shape", np.einsum("bhqk,bkhd->bqhd", a, b).shape)

session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
print("DIES: level full kills this process at run", flush=True)
print("the bug does not show; the shape is", session.run(None, {"a": a, "b": b})[0].shape)
