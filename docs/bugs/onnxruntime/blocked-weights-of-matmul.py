"""ONNX Runtime (CPU): wrong values with QDQSelectorActionTransformer

QDQSelectorActionTransformer fuses a MatMul with weights that are dequantized in blocks to MatMulIntegerToFloat,
which knows no blocks.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

# Two blocks of two rows: the first two rows of the weights are times 1 and 0.25, the last two times 3 and 0.5.
nodes = [
    helper.make_node("DequantizeLinear", ["x", "one"], ["v0"]),
    helper.make_node("DequantizeLinear", ["weights", "scales"], ["v1"], axis=0, block_size=2),
    helper.make_node("MatMul", ["v0", "v1"], ["v2"]),
]
inputs = [helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 4])]
outputs = [helper.make_tensor_value_info("v2", TensorProto.FLOAT, [1, 2])]
constants = [
    numpy_helper.from_array(np.array(1, np.float32), "one"),
    numpy_helper.from_array(np.array([[1, 0.25], [3, 0.5]], np.float32), "scales"),
    numpy_helper.from_array(np.ones((4, 2), np.uint8), "weights"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
feed = {"x": np.ones((1, 4), np.uint8)}


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
want = run(ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
got = run(ort.GraphOptimizationLevel.ORT_ENABLE_ALL)
if not np.allclose(want, got, rtol=1e-4, atol=1e-5):
    print("BUG: level full gives", got.tolist(), "instead of", want.tolist())
    sys.exit(1)
print("the bug does not show")
