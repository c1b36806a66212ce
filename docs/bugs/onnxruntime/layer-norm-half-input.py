"""ONNX Runtime (CPU): an error with LayerNormFusion

LayerNormFusion drops the Cast from float16 in front, so that the input and the scale of its LayerNormalization
differ in type.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("Cast", ["x0"], ["v0"], to=1),
    helper.make_node("ReduceMean", ["v0", "c1"], ["v1"]),
    helper.make_node("Sub", ["v0", "v1"], ["v2"]),
    helper.make_node("Pow", ["v2", "c3"], ["v3"]),
    helper.make_node("ReduceMean", ["v3", "c1"], ["v4"]),
    helper.make_node("Add", ["v4", "c2"], ["v5"]),
    helper.make_node("Sqrt", ["v5"], ["v6"]),
    helper.make_node("Div", ["v2", "v6"], ["v7"]),
    helper.make_node("Mul", ["v7", "c0"], ["v8"]),
    helper.make_node("Add", ["v8", "c0"], ["v9"]),
]
inputs = [helper.make_tensor_value_info("x0", TensorProto.FLOAT16, [1])]
outputs = [helper.make_tensor_value_info("v9", TensorProto.FLOAT, [1])]
constants = [
    numpy_helper.from_array(np.array([0.0], np.float32), "c0"),
    numpy_helper.from_array(np.array([-1], np.int64), "c1"),
    numpy_helper.from_array(np.array(1.0, np.float32), "c2"),
    numpy_helper.from_array(np.array(2.0, np.float32), "c3"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)

feeds = [
    {"x0": np.array([0.0], np.float16)},
]

# To blame: LayerNormFusionL1, LayerNormFusionL2.


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
