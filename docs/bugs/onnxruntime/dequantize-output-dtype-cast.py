"""ONNX Runtime (CPU): a valid model raises an error

The graph transformer that inserts Casts (InsertCastTransformer) lets a DequantizeLinear compute in float32 and leaves its
attribute `output_dtype` at float16, so that the model is refused.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("QuantizeLinear", ["x0", "c0"], ["v0"]),
    helper.make_node("DequantizeLinear", ["v0", "c1"], ["v1"], output_dtype=10),
    helper.make_node("Relu", ["v1"], ["v2"]),
]
inputs = [helper.make_tensor_value_info("x0", TensorProto.FLOAT, [])]
outputs = [helper.make_tensor_value_info("v2", TensorProto.FLOAT16, [])]
constants = [
    numpy_helper.from_array(np.array(1.0, np.float32), "c0"),
    numpy_helper.from_array(np.array(1.0, np.float16), "c1"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=12)

feeds = [
    {"x0": np.array(0.0, np.float32)},
]



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
try:
    run(ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
except Exception as error:
    print("BUG: level off raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
print("the bug does not show")
