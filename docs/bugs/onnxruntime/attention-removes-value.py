"""ONNX Runtime (CPU): an error with AttentionFusion

AttentionFusion removes the values of the heads, although another node or the caller reads them.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("Reshape", ["x0", "c3"], ["v0"]),
    helper.make_node("Transpose", ["v0"], ["v1"], perm=[0, 2, 1]),
    helper.make_node("MatMul", ["v1", "c0"], ["v2"]),
    helper.make_node("Reshape", ["v2", "c4"], ["v3"]),
    helper.make_node("Split", ["v3", "c5"], ["v4", "v5", "v6"], axis=2),
    helper.make_node("Transpose", ["v4"], ["v7"], perm=[2, 0, 3, 1, 4]),
    helper.make_node("Squeeze", ["v7", "c6"], ["v8"]),
    helper.make_node("Mul", ["v8", "c7"], ["v9"]),
    helper.make_node("Squeeze", ["v5", "c8"], ["v10"]),
    helper.make_node("Transpose", ["v10"], ["v11"], perm=[0, 2, 3, 1]),
    helper.make_node("Transpose", ["v6"], ["v12"], perm=[2, 0, 3, 1, 4]),
    helper.make_node("Squeeze", ["v12", "c11"], ["v13"]),
    helper.make_node("MatMul", ["v9", "v11"], ["v14"]),
    helper.make_node("Softmax", ["v14"], ["v15"]),
    helper.make_node("MatMul", ["v15", "v13"], ["v16"]),
    helper.make_node("Transpose", ["v16"], ["v17"], perm=[0, 2, 1, 3]),
    helper.make_node("Reshape", ["v17", "c9"], ["v18"]),
    helper.make_node("MatMul", ["v18", "c1"], ["v19"]),
    helper.make_node("Add", ["v19", "c2"], ["v20"]),
    helper.make_node("Reshape", ["v13", "c10"], ["v21"]),
]
inputs = [helper.make_tensor_value_info("x0", TensorProto.FLOAT, [48])]
outputs = [
    helper.make_tensor_value_info("v21", TensorProto.FLOAT, [48]),
    helper.make_tensor_value_info("v20", TensorProto.FLOAT, [2, 3, 8]),
]
constants = [
    numpy_helper.from_array(np.zeros((8, 24), np.float32), "c0"),
    numpy_helper.from_array(np.zeros((8, 8), np.float32), "c1"),
    numpy_helper.from_array(np.zeros((8,), np.float32), "c2"),
    numpy_helper.from_array(np.array([2, 8, 3], np.int64), "c3"),
    numpy_helper.from_array(np.array([2, 3, 3, 2, 4], np.int64), "c4"),
    numpy_helper.from_array(np.array([1, 1, 1], np.int64), "c5"),
    numpy_helper.from_array(np.array([0], np.int64), "c6"),
    numpy_helper.from_array(np.array(0.0, np.float32), "c7"),
    numpy_helper.from_array(np.array([2], np.int64), "c8"),
    numpy_helper.from_array(np.array([2, 3, 8], np.int64), "c9"),
    numpy_helper.from_array(np.array([48], np.int64), "c10"),
    numpy_helper.from_array(np.array([0], np.int64), "c11"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)

feeds = [
    {"x0": np.zeros((48,), np.float32)},
]

# To blame: AttentionFusion, MatMulAddFusion, ReshapeFusion.


def run(level, off=()):
    """Build at `level` without the passes `off`; return the outputs for each feed."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    payload, providers = model.SerializeToString(), ["CPUExecutionProvider"]
    session = ort.InferenceSession(payload, options, providers, disabled_optimizers=list(off))
    return [session.run(None, feed) for feed in feeds]


print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
run(ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
print("level off works")
try:
    run(ort.GraphOptimizationLevel.ORT_ENABLE_ALL)
except Exception as error:
    print("BUG: level full raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
print("the bug does not show")
