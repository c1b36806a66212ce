"""ONNX Runtime (CPU): an error with RemoveDuplicateCastTransformer

RemoveDuplicateCastTransformer, which runs at every level, removes the second of two Casts that cancel out, although
the body of an If, Loop or Scan reads its result.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

then_body = helper.make_graph(
    [helper.make_node("Neg", ["v1"], ["b0"])], "then", [], [helper.make_tensor_value_info("b0", TensorProto.FLOAT, [2])]
)
else_body = helper.make_graph(
    [helper.make_node("Abs", ["v1"], ["b1"])], "else", [], [helper.make_tensor_value_info("b1", TensorProto.FLOAT, [2])]
)
nodes = [
    helper.make_node("Cast", ["x"], ["v0"], to=TensorProto.DOUBLE),
    helper.make_node("Cast", ["v0"], ["v1"], to=TensorProto.FLOAT),
    helper.make_node("If", ["condition"], ["v2"], then_branch=then_body, else_branch=else_body),
]
inputs = [
    helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]),
    helper.make_tensor_value_info("condition", TensorProto.BOOL, []),
]
outputs = [helper.make_tensor_value_info("v2", TensorProto.FLOAT, [2])]
graph = helper.make_graph(nodes, "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
feed = {"x": np.ones(2, np.float32), "condition": np.array(True)}


def run(level):
    """Build at `level`; return the first output."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feed)[0]


print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
try:
    run(ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
except Exception as error:
    print("BUG: level off raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
print("the bug does not show")
