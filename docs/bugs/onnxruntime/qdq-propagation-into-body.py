"""ONNX Runtime (CPU): the process dies in QDQPropagationTransformer

QDQPropagationTransformer takes a value that the body of an If, Loop or Scan reads for an input of that node, and
writes beyond its list of inputs.

Seen with onnxruntime 1.32.0.

This script dies when the bug shows (of signal 6). Exit code 0: it does not show.
"""

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

body1_nodes = [
    helper.make_node("Sub", ["v1", "b0"], ["b3"]),
]
body1_inputs = [
    onnx.ValueInfoProto(name="b0"),
    onnx.ValueInfoProto(name="b1"),
]
body1_outputs = [onnx.ValueInfoProto(name="b3")]
body1_graph = helper.make_graph(body1_nodes, "body_77", body1_inputs, body1_outputs)
nodes = [
    helper.make_node("DequantizeLinear", ["x0", "c0"], ["v0"]),
    helper.make_node("Transpose", ["v0"], ["v1"]),
    helper.make_node("Scan", ["c0", "c1"], ["v2"], body=body1_graph, num_scan_inputs=1),
]
inputs = [helper.make_tensor_value_info("x0", TensorProto.INT32, [])]
outputs = [helper.make_tensor_value_info("v2", TensorProto.FLOAT, [])]
constants = [
    numpy_helper.from_array(np.array(1.0, np.float32), "c0"),
    numpy_helper.from_array(np.array([0.0], np.float32), "c1"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

feeds = [
    {"x0": np.array(0, np.int32)},
]

# To blame: QDQPropagationTransformer.


def run(level, off=()):
    """Build at `level` without the passes `off`; return the outputs for each feed."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    payload, providers = model.SerializeToString(), ["CPUExecutionProvider"]
    session = ort.InferenceSession(payload, options, providers, disabled_optimizers=list(off))
    return [session.run(None, feed) for feed in feeds]


print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
try:
    onnx.checker.check_model(model, full_check=True)
    print("onnx's checker accepts the model")
except Exception as error:
    print("onnx's checker says of the model:", " ".join(str(error).split()))
run(ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
print("level off works")
print("DIES: level full kills this process at compile", flush=True)
run(ort.GraphOptimizationLevel.ORT_ENABLE_ALL)
print("the bug does not show")
